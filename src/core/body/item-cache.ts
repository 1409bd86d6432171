/**
 * ITEM CACHE: messages and tools of recent requests, found by their bytes. An agent sends its whole conversation and
 * all of its tools with every turn, so most of a large body was parsed and checked before. An item is found only by the
 * organization that sent it, in the same list of the same operation, and only if all of its bytes are equal: a hash
 * only tells where to look. Rules: docs/design/service.md, Items that were seen before.
 */
export interface ItemShape {
  values: number;
  members: number;
  /** The item's own depth of nesting. */
  depth: number;
}

/** A message or tool that was valid in its list. Requests share the value: nobody may change it. */
export class CachedItem {
  /** The item's position in the list that was read last. */
  place: ListPosition | null = null;
  generation = 0;

  constructor(
    readonly owner: string,
    readonly hash: number,
    public bytes: Uint8Array,
    public value: unknown,
    readonly shape: ItemShape,
  ) {}

  isAt(text: Buffer, at: number): boolean {
    const { bytes } = this;
    const end = at + bytes.length;
    const couldBe = bytes.length > 0 && end <= text.length && text[end - 1] === bytes[bytes.length - 1];
    return couldBe && text.compare(bytes, 0, bytes.length, at, end) === 0;
  }
}

/**
 * A position in a list: an item, and the position that followed it the last time. One item may be at several positions.
 */
export class ListPosition {
  next: ListPosition | null = null;

  constructor(readonly item: CachedItem) {}

  /** Returns the position after this one, and lets it hold `item` from now on. */
  followedBy(item: CachedItem): ListPosition {
    if (this.next?.item !== item) this.next = new ListPosition(item);
    item.place = this.next;
    return this.next;
  }
}

/** The number of slots for hashes of items that were seen once. A slot remembers the last hash that fell into it. */
const sights_max = 2 ** 15;

/** The memory of an item's parsed value, as a multiple of its bytes. */
const heapOfByte = 3;
const item_bytes = 512;

export class ItemCache {
  /** Items that were used since the last call of `age` (`#recent`), and those that were not (`#older`). */
  #recent = new Map<number, CachedItem>();
  #older = new Map<number, CachedItem>();
  #recent_bytes = 0;
  #older_bytes = 0;
  #generation = 1;
  readonly #sights = new Uint32Array(sights_max);

  /**
   * Makes an empty cache. `seed` is secret: it spreads hashes so that nobody can choose items that displace each other.
   */
  constructor(
    readonly bytes_max: number,
    readonly seed: number,
  ) {}

  /** The memory that the items take, approximately. */
  get bytes(): number {
    return this.#recent_bytes + this.#older_bytes;
  }

  get size(): number {
    return this.#recent.size + this.#older.size;
  }

  /** Whether the items of a body of this size would displace only a part of the other items. */
  hasRoomFor(body_bytes: number): boolean {
    return (1 + heapOfByte) * body_bytes <= this.bytes_max / 4;
  }

  seedOf(owner: string): number {
    return Bun.hash.xxHash32(owner, this.seed);
  }

  /**
   * Reports whether an item with this hash was seen before. Most items of bodies that are not part of a conversation
   * never come again, so keeping one at its first sight would cost more than it saves.
   */
  sees(hash: number): boolean {
    const place = hash % sights_max;
    if (this.#sights[place] === hash) return true;
    this.#sights[place] = hash;
    return false;
  }

  find(owner: string, hash: number, text: Buffer, from: number, to: number): CachedItem | null {
    const item = this.#recent.get(hash) ?? this.#older.get(hash);
    const isFound = item?.owner === owner && item.bytes.length === to - from && item.isAt(text, from);
    return isFound ? item : null;
  }

  /** The position before the first item of a list. `hash` identifies the list by its owner, operation and name. */
  head(owner: string, hash: number): ListPosition {
    const found = this.#recent.get(hash) ?? this.#older.get(hash);
    if (found?.owner === owner && found.value === null) {
      this.use(found);
      return found.place!;
    }
    const head = new CachedItem(owner, hash, none, null, { values: 0, members: 0, depth: 0 });
    head.place = new ListPosition(head);
    return this.#put(head).place!;
  }

  add(owner: string, hash: number, bytes: Uint8Array, value: unknown, shape: ItemShape): CachedItem {
    return this.#put(new CachedItem(owner, hash, bytes, value, shape));
  }

  /** Marks an item as used, which keeps it until `age` has been called twice. */
  use(item: CachedItem): void {
    if (item.generation === this.#generation || this.#older.get(item.hash) !== item) return;
    this.#older.delete(item.hash);
    this.#older_bytes -= sizeOf(item);
    this.#put(item);
  }

  /** Forgets the items that were not used since the last call. */
  age(): void {
    // List positions still refer to the items, and must not keep their memory.
    for (const item of this.#older.values()) forget(item);
    this.#older = this.#recent;
    this.#older_bytes = this.#recent_bytes;
    this.#recent = new Map();
    this.#recent_bytes = 0;
    this.#generation += 1;
  }

  #put(item: CachedItem): CachedItem {
    if (this.#recent_bytes + sizeOf(item) > this.bytes_max / 2) this.age();
    const before = this.#recent.get(item.hash);
    if (before) {
      this.#recent_bytes -= sizeOf(before);
      forget(before);
    }
    item.generation = this.#generation;
    this.#recent.set(item.hash, item);
    this.#recent_bytes += sizeOf(item);
    return item;
  }
}

function sizeOf({ bytes }: CachedItem): number {
  return (1 + heapOfByte) * bytes.length + item_bytes;
}

function forget(item: CachedItem): void {
  item.place = null;
  item.value = undefined;
  item.bytes = none;
}

const none = new Uint8Array();

/**
 * The items (messages, tools) of one body that earlier bodies had as well: the scan passes over them, the parser leaves
 * them out, and their values are put in afterwards. If anything about a body is unusual, all of it is parsed instead,
 * with the same outcome. Rules: docs/design/service.md, Items that were seen before.
 */
import type { CachedItem, ItemCache, ItemShape, ListPosition } from "./item-cache.ts";
import { closingBrace, closingBracket, colon, comma, digitZero, isBlank, openingBracket } from "./json-bytes.ts";

/** Smaller items are not looked up, because parsing them is as quick. */
const item_bytes_min = 64;

const items_max = 2048;

/** For each list, by its name, the items that have to be checked: all but those that earlier bodies had. */
export type UnseenItems = Readonly<Record<string, readonly unknown[]>>;

/** A member of the body whose value is looked up: a list with its items, or a text, which is its only item. */
interface List {
  name: string;
  isText: boolean;
  /** The organization among whose items a look-up searches, and the seed of the hashes of its items. */
  owner: string;
  seed: number;
  index: number;
  head: ListPosition;
  /** The position after the last item: the next item is expected to be the one that followed in an earlier body. */
  expected: ListPosition | null;
}

interface Item {
  list: List;
  index: number;
  from: number;
  to: number;
  hash: number;
  shape: ItemShape;
  /** The equal item of an earlier body; null if there is none. */
  cached: CachedItem | null;
  value: unknown;
}

interface Begun {
  from: number;
  values: number;
  members: number;
}

export class BodyItems {
  readonly #cache: ItemCache;
  readonly #owner: string;
  readonly #names: readonly string[];
  readonly #items: Item[] = [];
  #named: string | null = null;
  #list: List | null = null;
  #begun: Begun | null = null;
  #found_bytes = 0;
  #body: Readonly<Record<string, unknown>> | null = null;
  /** The number of items that were found in the cache, and of the values and members in them. */
  readonly found = { items: 0, values: 0, members: 0 };

  /**
   * Looks up items for one owner: only items that this owner sent before are found. `names`: the lists of the body
   * whose items are looked up.
   */
  constructor(cache: ItemCache, owner: string, names: readonly string[]) {
    this.#cache = cache;
    this.#owner = owner;
    this.#names = names;
  }

  // The methods that the scan calls. Positions are relative to the piece; `base` is the number of bytes before it.

  /** Called when the name of a member of the body has ended; the member's value follows. */
  named(piece: Uint8Array, from: number, to: number): void {
    this.#named = this.#names.find((name) => isText(piece, from, to, name)) ?? null;
  }

  /** Called when a member of the body has ended. */
  unnamed(): void {
    this.#named = null;
  }

  /** Called when an object or array opens as the value of a member of the body. */
  opened(bracket: number): void {
    if (this.#named !== null && bracket === openingBracket) this.#list = this.#listOf(this.#named, false);
    this.#named = null;
  }

  /** Whether a string that begins now is the value of a member that is looked up. */
  get isBeforeText(): boolean {
    return this.#named !== null;
  }

  /** The text that an earlier body had here, if its opening quote is at this position; else null. */
  textAt(piece: Buffer, at: number, base: number): CachedItem | null {
    this.#list = this.#listOf(this.#named!, true);
    this.#named = null;
    const expected = this.expectedAt(piece, at, base);
    if (expected) this.#list = null;
    else this.begins({ from: base + at, values: 0, members: 0 });
    return expected;
  }

  textEnds(piece: Buffer, base: number, to: number): void {
    this.ends(piece, base, { to, values: 0, members: 0, depth: 0 });
    this.#list = null;
  }

  #listOf(name: string, isText: boolean): List {
    const owner = `${this.#owner} ${name}`;
    const seed = this.#cache.seedOf(owner);
    const head = this.#cache.head(owner, seed);
    return { name, isText, owner, seed, index: 0, head, expected: head.next };
  }

  closed(): void {
    this.#list = null;
  }

  get isInList(): boolean {
    return this.#list !== null;
  }

  /** Called at the comma between two items. */
  follows(): void {
    if (this.#list) this.#list.index++;
  }

  /** The item that an earlier body had here, if its opening bracket is at this position; else null. */
  expectedAt(piece: Buffer, at: number, base: number): CachedItem | null {
    const list = this.#list!;
    const place = list.expected;
    if (!place?.item.isAt(piece, at)) return null;
    const { item } = place;
    const to = at + item.bytes.length;
    if (!isWholeValue(piece, at, to, list.isText)) return null;
    this.#add(list, { from: base + at, to: base + to, hash: item.hash }, item, place);
    return item;
  }

  /**
   * Called when an item begins that has to be parsed. `begun` has the numbers of values and members in the body before
   * the item.
   */
  begins(begun: Begun): void {
    this.#begun = begun;
  }

  ends(piece: Buffer, base: number, { to, values, members, depth }: ItemShape & { to: number }): void {
    const list = this.#list;
    const begun = this.#begun;
    this.#begun = null;
    if (!list || !begun || to - begun.from < item_bytes_min) return;
    const place = { from: begun.from, to, hash: 0 };
    let cached: CachedItem | null = null;
    if (begun.from >= base) {
      place.hash = Bun.hash.xxHash32(piece.subarray(begun.from - base, to - base), list.seed);
      cached = this.#cache.find(list.owner, place.hash, piece, begun.from - base, to - base);
      if (cached && !isWholeValue(piece, begun.from - base, to - base, list.isText)) cached = null;
    }
    if (cached) this.#add(list, place, cached, cached.place);
    else {
      const shape = { values: values - begun.values, members: members - begun.members, depth };
      this.#items.push({ list, index: list.index, ...place, shape, cached: null, value: undefined });
      // If only this item was replaced, the next item is expected to equal the next one of the earlier body.
      list.expected = list.expected?.next ?? null;
    }
    if (this.#items.length >= items_max) this.#list = null;
  }

  #add(
    list: List,
    { from, to, hash }: { from: number; to: number; hash: number },
    cached: CachedItem,
    place: ListPosition | null,
  ): void {
    const { shape, value } = cached;
    this.#cache.use(cached);
    this.#items.push({ list, index: list.index, from, to, hash, shape, cached, value });
    list.expected = place?.next ?? null;
    this.found.items++;
    this.found.values += shape.values;
    this.found.members += shape.members;
    this.#found_bytes += to - from;
  }

  // The methods that the parser calls.

  /** The body with a zero in place of each item that was found. */
  remainder(bytes: Uint8Array): Uint8Array {
    const rest = new Uint8Array(bytes.length - this.#found_bytes + this.found.items);
    let from = 0;
    let at = 0;
    for (const item of this.#items) {
      if (!item.cached) continue;
      rest.set(bytes.subarray(from, item.from), at);
      at += item.from - from;
      rest[at++] = digitZero;
      from = item.to;
    }
    rest.set(bytes.subarray(from), at);
    return rest;
  }

  /**
   * Puts the items that were found into the parsed remainder. `members`: the number of members of the body as written.
   * False if names repeat, because then the parser may have kept another list than the one that was scanned.
   */
  fill(value: unknown, members: number): boolean {
    if (!isBodyOf(value, members)) return false;
    for (const { list, index, cached, value: item } of this.#items) {
      if (!cached) continue;
      const inside: unknown = list.isText ? value : value[list.name];
      const key = list.isText ? list.name : index;
      if (!holdsZero(inside, key)) return false;
      inside[key] = item;
    }
    this.#body = value;
    return true;
  }

  /** Takes a body that was parsed as a whole: none of the found items are used. */
  parsed(value: unknown, members: number): void {
    this.found.items = 0;
    for (const item of this.#items) item.cached = null;
    if (isBodyOf(value, members)) this.#body = value;
  }

  /** The items that have to be checked; null: all items. */
  unseen(): UnseenItems | null {
    const body = this.#body;
    if (!body || this.found.items === 0) return null;
    const unseen: Record<string, unknown[]> = {};
    for (const name of this.#names) {
      const items = body[name];
      if (!Array.isArray(items)) continue;
      const seen = this.#items.filter(({ list, cached }) => cached !== null && list.name === name);
      let next = 0;
      unseen[name] = items.filter((_, index) => {
        const isSeen = seen[next]?.index === index;
        if (isSeen) next++;
        return !isSeen;
      });
    }
    return unseen;
  }

  /** Keeps the items of a valid body that had been seen once before. Their bytes are copied. */
  keep(bytes: Uint8Array): void {
    const body = this.#body;
    if (!body || !this.#cache.hasRoomFor(bytes.length)) return;
    let list: List | null = null;
    let place: ListPosition | null = null;
    for (const item of this.#items) {
      if (item.list !== list) {
        list = item.list;
        place = list.head;
      }
      const cached = item.cached ?? this.#kept(item, body, bytes);
      if (cached && place) place = place.followedBy(cached);
    }
  }

  #kept({ list, index, from, to, hash, shape }: Item, body: Readonly<Record<string, unknown>>, bytes: Uint8Array) {
    const value = body[list.name];
    const item = list.isText ? value : Array.isArray(value) ? value[index] : undefined;
    if (item === undefined) return null;
    const known = hash || Bun.hash.xxHash32(bytes.subarray(from, to), list.seed);
    return this.#cache.sees(known) ? this.#cache.add(list.owner, known, bytes.slice(from, to), item, shape) : null;
  }
}

function isText(piece: Uint8Array, from: number, to: number, text: string): boolean {
  // The closing quote is the byte after the name.
  if (to - from !== text.length + 1) return false;
  for (let at = 0; at < text.length; at++) if (piece[from + at] !== text.charCodeAt(at)) return false;
  return true;
}

/**
 * Whether these bytes are a whole item of a list, or a whole member of the body. Only those may be replaced by a zero:
 * the invalid `-{}` would become `-0`.
 */
function isWholeValue(piece: Uint8Array, from: number, to: number, isMember: boolean): boolean {
  let before = from - 1;
  while (before >= 0 && isBlank(piece[before]!)) before--;
  let behind = to;
  while (behind < piece.length && isBlank(piece[behind]!)) behind++;
  if (before < 0 || behind >= piece.length) return false;
  const [opening, closing] = [piece[before]!, piece[behind]!];
  const isOpening = isMember ? opening === colon : opening === comma || opening === openingBracket;
  return isOpening && (closing === comma || closing === (isMember ? closingBrace : closingBracket));
}

function holdsZero(inside: unknown, key: string | number): inside is Record<string | number, unknown> {
  return typeof inside === "object" && inside !== null && (inside as Record<string | number, unknown>)[key] === 0;
}

/** Reports whether the value is an object with as many members as its JSON text has (`members`). */
function isBodyOf(value: unknown, members: number): value is Record<string, unknown> {
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && Object.keys(value).length === members;
}

/**
 * The bodies that wait for a worker. Those that a settlement needs come first, and the organizations take turns, so
 * that none of them occupies all workers or the whole queue. Pure.
 */

export interface WaitingBody {
  bytes: number;
  /** The organization that asks; undefined: a settlement needs the count. */
  organization?: string | undefined;
}

interface Room {
  waiting_max: number;
  waiting_bytes_max: number;
}

/** An organization's bodies may fill this share of the queue. */
const share_max = 1 / 4;

export class WaitingBodies<Body extends WaitingBody> {
  readonly #room: Room;
  /** The bodies of each organization, in the order of its turns; `undefined`: those of settlements. */
  readonly #lines = new Map<string | undefined, Body[]>();
  #count = 0;
  #bytes = 0;

  constructor(room: Room) {
    this.#room = room;
  }

  get size(): number {
    return this.#count;
  }

  /** Adds the body to the queue; returns false if the queue has no room for it. */
  add(body: Body): boolean {
    const { waiting_max, waiting_bytes_max } = this.#room;
    const line = this.#lines.get(body.organization) ?? [];
    const bytes = line.reduce((sum, one) => sum + one.bytes, body.bytes);
    const share = body.organization === undefined ? 1 : share_max;
    if (this.#count >= waiting_max || this.#bytes + body.bytes > waiting_bytes_max) return false;
    if (line.length > 0 && (line.length >= waiting_max * share || bytes > waiting_bytes_max * share)) return false;
    line.push(body);
    this.#lines.set(body.organization, line);
    this.#count += 1;
    this.#bytes += body.bytes;
    return true;
  }

  /** Takes the body whose turn it is; undefined if none waits. */
  next(): Body | undefined {
    const organization = this.#lines.has(undefined) ? undefined : this.#lines.keys().next().value;
    const line = this.#lines.get(organization);
    if (!line) return undefined;
    const body = line.shift()!;
    this.#lines.delete(organization);
    if (line.length > 0) this.#lines.set(organization, line);
    this.#count -= 1;
    this.#bytes -= body.bytes;
    return body;
  }
}

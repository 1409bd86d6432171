/**
 * The bodies that wait for a worker. Organizations take turns, so that one of them fills neither the workers nor the
 * queue. Bodies whose count a settlement (the final charge of a request) needs go first, but at most three in a row
 * while clients wait for counts. Pure.
 */

export interface WaitingBody {
  bytes: number;
  organization?: string | undefined;
  /** Whether a settlement needs the count, and no client. */
  isSettlement: boolean;
}

interface Room {
  waiting_max: number;
  waiting_bytes_max: number;
}

/**
 * An organization may fill this share of the queue with bodies of settlements, and as much with bodies of its clients.
 */
const share_max = 1 / 4;
const settlementsInRow_max = 3;

/** The bodies of each organization, in the order of the organizations' turns. */
type Lines<Body> = Map<string | undefined, Body[]>;

export class WaitingBodies<Body extends WaitingBody> {
  readonly #room: Room;
  readonly #settlements: Lines<Body> = new Map();
  readonly #counts: Lines<Body> = new Map();
  #settlementsInRow = 0;
  #count = 0;
  #bytes = 0;

  constructor(room: Room) {
    this.#room = room;
  }

  get size(): number {
    return this.#count;
  }

  /** Adds the body to the queue; returns false if the queue, or the organization's share of it, is full. */
  add(body: Body): boolean {
    const { waiting_max, waiting_bytes_max } = this.#room;
    const lines = body.isSettlement ? this.#settlements : this.#counts;
    const line = lines.get(body.organization) ?? [];
    const bytes = line.reduce((sum, one) => sum + one.bytes, body.bytes);
    if (this.#count >= waiting_max || this.#bytes + body.bytes > waiting_bytes_max) return false;
    const isFull = line.length >= waiting_max * share_max || bytes > waiting_bytes_max * share_max;
    if (line.length > 0 && isFull) return false;
    line.push(body);
    lines.set(body.organization, line);
    this.#count += 1;
    this.#bytes += body.bytes;
    return true;
  }

  /** Takes the body whose turn it is; undefined if none waits. */
  next(): Body | undefined {
    const isTurnOfCounts = this.#counts.size > 0 && this.#settlementsInRow >= settlementsInRow_max;
    const lines = this.#settlements.size === 0 || isTurnOfCounts ? this.#counts : this.#settlements;
    const [turn] = lines;
    if (!turn) return undefined;
    const [organization, line] = turn;
    const body = line.shift()!;
    lines.delete(organization);
    if (line.length > 0) lines.set(organization, line);
    this.#settlementsInRow = lines === this.#settlements ? this.#settlementsInRow + 1 : 0;
    this.#count -= 1;
    this.#bytes -= body.bytes;
    return body;
  }
}

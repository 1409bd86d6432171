/** What the simulator was asked and what became of it, for tests to look at. Bounded in number and in bytes. */

export interface SimulatorRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The parsed body, or its text where it is not JSON; undefined where there is none. */
  body: unknown;
  at_ms: number;
  /** Null until the status line. */
  status: number | null;
  /** Output tokens that were generated for it: what a real engine would count, also when the client left. */
  tokens: number;
  /** How it ended; null while it runs. `cut`: the simulator broke the connection, on cue. */
  ended: "complete" | "client-left" | "cut" | "stopped" | null;
  ended_at_ms: number | null;
}

export interface LogLimits {
  entries_max: number;
  body_characters_max: number;
}

export class RequestLog {
  /** The newest last. */
  readonly entries: SimulatorRequest[] = [];
  readonly counts = { requests: 0, active: 0, active_max: 0, tokens: 0, clients_left: 0 };
  readonly #sizes: number[] = [];
  readonly #running = new Set<SimulatorRequest>();
  #characters = 0;

  constructor(private readonly limits: LogLimits) {}

  open(request: Request, path: string): SimulatorRequest {
    const entry: SimulatorRequest = {
      method: request.method,
      path,
      headers: request.headers.toJSON(),
      body: undefined,
      at_ms: Date.now(),
      status: null,
      tokens: 0,
      ended: null,
      ended_at_ms: null,
    };
    this.counts.requests += 1;
    this.#running.add(entry);
    this.counts.active += 1;
    this.counts.active_max = Math.max(this.counts.active_max, this.counts.active);
    this.entries.push(entry);
    this.#sizes.push(0);
    this.#evict();
    return entry;
  }

  /** Keeps a body as long as there is room for it. */
  keepBody(entry: SimulatorRequest, body: unknown, characters: number): void {
    const at = this.entries.lastIndexOf(entry);
    if (at < 0 || characters > this.limits.body_characters_max) return;
    entry.body = body;
    this.#sizes[at] = characters;
    this.#characters += characters;
    this.#evict();
  }

  end(entry: SimulatorRequest, how: NonNullable<SimulatorRequest["ended"]>): void {
    if (!this.#running.delete(entry)) return;
    entry.ended = how;
    entry.ended_at_ms = Date.now();
    this.counts.active -= 1;
    this.counts.tokens += entry.tokens;
    if (how === "client-left") this.counts.clients_left += 1;
  }

  endAll(how: NonNullable<SimulatorRequest["ended"]>): void {
    for (const entry of this.#running) this.end(entry, how);
  }

  #evict(): void {
    while (this.entries.length > this.limits.entries_max || this.#characters > this.limits.body_characters_max) {
      this.entries.shift();
      this.#characters -= this.#sizes.shift() ?? 0;
    }
  }
}

/**
 * The simulator of an engine, with a log of its requests and how they ended. The log is bounded in number and in bytes.
 */
import {
  type SimulatorOptions as Options,
  type Simulator as Plain,
  startSimulator as start,
} from "../../src/features/simulator/server.ts";
import type { Ending, Watch } from "../../src/features/simulator/watch.ts";

export interface SimulatorOptions extends Omit<Options, "watch"> {
  log?: Partial<LogLimits>;
}

export interface Simulator extends Plain {
  /** The log of requests, the newest last; the oldest are dropped (`SimulatorOptions.log`). */
  requests: readonly SimulatorRequest[];
  counts: Readonly<RequestLog["counts"]>;
}

const defaultLimits: LogLimits = { entries_max: 256, body_characters_max: 16 * 1024 * 1024 };

export async function startSimulator({ log: limits, ...options }: SimulatorOptions = {}): Promise<Simulator> {
  const log = new RequestLog({ ...defaultLimits, ...limits });
  const simulator = await start({ ...options, watch: (request, path) => log.watch(request, path) });
  const stop = async () => {
    log.endAll("stopped");
    await simulator.stop();
  };
  return { ...simulator, stop, requests: log.entries, counts: log.counts };
}

export interface SimulatorRequest {
  method: string;
  path: string;
  headers: Record<string, string>;
  /** The parsed body, or its text where it is not JSON; undefined where the request has none. */
  body: unknown;
  at_ms: number;
  /** The status of the response; null until the status line was sent. */
  status: number | null;
  /**
   * The number of output tokens that were generated for the request; a real engine counts the same ones, even if the
   * client left.
   */
  tokens: number;
  /**
   * How the response ended; null while it runs. `cut`: the simulator broke the connection because a directive said so.
   */
  ended: Ending | "stopped" | null;
  ended_at_ms: number | null;
}

interface LogLimits {
  entries_max: number;
  body_characters_max: number;
}

class RequestLog {
  /** The entries of the log, the newest last. */
  readonly entries: SimulatorRequest[] = [];
  readonly counts = { requests: 0, active: 0, active_max: 0, tokens: 0, clients_left: 0 };
  readonly #sizes: number[] = [];
  readonly #running = new Set<SimulatorRequest>();
  #characters = 0;

  constructor(private readonly limits: LogLimits) {}

  watch(request: Request, path: string): Watch {
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
    return {
      body: (text) => this.#keepBody(entry, text),
      status: (status) => {
        entry.status = status;
      },
      tokens: (count) => {
        entry.tokens += count;
      },
      ended: (how) => this.#end(entry, how),
    };
  }

  /** Stores the body of a request in its entry if the log's limits allow that. */
  #keepBody(entry: SimulatorRequest, text: string): void {
    const at = this.entries.lastIndexOf(entry);
    if (at < 0 || text.length > this.limits.body_characters_max) return;
    entry.body = parsed(text);
    this.#sizes[at] = text.length;
    this.#characters += text.length;
    this.#evict();
  }

  #end(entry: SimulatorRequest, how: Ending | "stopped"): void {
    if (!this.#running.delete(entry)) return;
    entry.ended = how;
    entry.ended_at_ms = Date.now();
    this.counts.active -= 1;
    this.counts.tokens += entry.tokens;
    if (how === "client-left") this.counts.clients_left += 1;
  }

  endAll(how: "stopped"): void {
    for (const entry of this.#running) this.#end(entry, how);
  }

  #evict(): void {
    while (this.entries.length > this.limits.entries_max || this.#characters > this.limits.body_characters_max) {
      this.entries.shift();
      this.#characters -= this.#sizes.shift() ?? 0;
    }
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

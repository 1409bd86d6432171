// The interface through which this benchmark starts and queries a gateway. README.md, How to add a gateway.

/** The limits of a key. Each gateway expresses them in its own settings. */
export interface Limits {
  /** The budget in output tokens for a month, or for the gateway's most similar window. Input tokens cost nothing. */
  output_tokens: number;
  requests_per_minute: number;
}

export interface KeyRequest {
  name: string;
  limits: Limits;
}

export interface Key {
  id: string;
  secret: string;
}

export interface Setup {
  /** The engine's URL, without a path. The engine's endpoint is /v1/chat/completions. */
  engine_url: string;
  /** An empty folder, which is removed at the end. */
  folder: string;
  /** The keys to create, in this order. */
  requested: readonly KeyRequest[];
  /** The longest time that creating the keys may take, in milliseconds. */
  keys_ms_max: number;
  /** Arguments that precede the program on its command line, such as those of `taskset`. */
  wrapper?: readonly string[];
  /** The names of the engine's models, if there are several. */
  models?: readonly string[];
}

export interface Running {
  /** The gateway's base URL for clients, which ends with /v1. */
  url: string;
  /** The gateway's name for the engine's model. */
  model: string;
  keys: Key[];
  /** The process IDs of the gateway and of its stores, without their child processes. */
  pids: { gateway: number; stores: number[] };
  /** The sum of the usage that the gateway has recorded for these keys. Null: its records cannot be queried by key. */
  usage(keys: readonly Key[]): Promise<Usage | null>;
  stop(): Promise<void>;
}

export interface Usage {
  output_tokens: number;
}

export interface Gateway {
  name: string;
  /** The name of the environment variable with the path of the gateway's program. */
  variable: string;
  /** A sentence on the settings of the gateway's keys, budgets, rates and records. */
  settings: string;
  /**
   * Whether the gateway has a budget, a rate limit, and usage records per key. Features that it lacks are not tested,
   * and the table says so.
   */
  has: { budget: boolean; rate: boolean; usage: boolean };
  version(program: string): Promise<string>;
  start(program: string, setup: Setup): Promise<Running>;
}

/** Creates keys with a gateway's interface, eight at a time, in the requested order. */
export async function eachKey(
  { requested, keys_ms_max }: Setup,
  make: (request: KeyRequest) => Promise<Key>,
): Promise<Key[]> {
  const keys: Key[] = [];
  const began_ms = Date.now();
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < requested.length; at = next++) {
      if (Date.now() - began_ms > keys_ms_max)
        throw new TooSlow(`${at} of ${requested.length} keys were made in ${keys_ms_max / 1000} s`);
      keys[at] = await make(requested[at]!);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return keys;
}

export class TooSlow extends Error {}

// The interface by which this benchmark runs and queries a gateway. README.md, How to add a gateway.

/** The limits of a key. Each gateway writes them in its own settings. */
export interface Limits {
  /**
   * The budget for a month, or for the gateway's nearest kind of window. Input tokens cost nothing, and an output token
   * costs one.
   */
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
  /** The engine's URL, without a path. The engine answers at /v1/chat/completions. */
  engine_url: string;
  /** An empty folder, which is removed at the end. */
  folder: string;
  /** The keys to make, in this order. */
  requested: readonly KeyRequest[];
  /** The most milliseconds that making the keys may take. */
  keys_ms_max: number;
  /** The words of the command line that come before the program, such as those of `taskset`. */
  wrapper?: readonly string[];
  /** The names of the engine's models, if there are several. */
  models?: readonly string[];
}

export interface Running {
  /** The base URL at which clients reach the gateway, which ends with /v1. */
  url: string;
  /** The name by which clients ask for the engine's model. */
  model: string;
  keys: Key[];
  /** The process ids of the gateway and of its stores, without their children. */
  pids: { gateway: number; stores: number[] };
  /**
   * The sum of the usage that the gateway has recorded for these keys. Null: the gateway keeps no records that can be
   * queried by key.
   */
  usage(keys: readonly Key[]): Promise<Usage | null>;
  stop(): Promise<void>;
}

export interface Usage {
  output_tokens: number;
}

export interface Gateway {
  name: string;
  /** The environment variable that names the gateway's program. */
  variable: string;
  /** How the gateway's keys, budgets, rates and records are set up, in one sentence. */
  settings: string;
  /** What the gateway limits and records per key. What is false is not tested, and the table says so. */
  has: { budget: boolean; rate: boolean; usage: boolean };
  version(program: string): Promise<string>;
  start(program: string, setup: Setup): Promise<Running>;
}

/** Makes keys by a gateway's interface, eight at a time, in the order in which they are requested. */
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

// What a gateway is to this benchmark. README.md, How to add a gateway.

/** What a key may use. Each gateway says it in its own settings. */
export interface Limits {
  /** Of a window of a month, or the nearest that the gateway has. A price of nothing for input, and of one for output. */
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
  /** The engine's, without a path. It answers at /v1/chat/completions. */
  engine_url: string;
  /** An empty folder, which is removed at the end. */
  folder: string;
  /** The keys to make, in this order. */
  requested: readonly KeyRequest[];
  /** Ends the making of keys. */
  keys_ms_max: number;
}

export interface Running {
  /** The base URL of its clients, which ends with /v1. */
  url: string;
  /** What clients call the engine's model. */
  model: string;
  keys: Key[];
  /** Of its own processes and of its stores, without their children. */
  pids: { gateway: number; stores: number[] };
  /** The sum of what its book says of these keys. Null: it keeps none that can be asked by key. */
  usage(keys: readonly Key[]): Promise<Usage | null>;
  stop(): Promise<void>;
}

export interface Usage {
  output_tokens: number;
}

export interface Gateway {
  name: string;
  /** The variable of the environment that names its program. */
  variable: string;
  /** How its key, budget, rate and record are set, in one sentence. */
  settings: string;
  /** What it keeps per key. What is false is not asked of it, and the table says so. */
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

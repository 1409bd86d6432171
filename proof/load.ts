// The clients of a session. Each client takes a key, sends a few requests with it, one after another, and then takes
// the next key.

import { type Chance, chanceFrom } from "./chance.ts";
import { ask, type Seen } from "./client.ts";
import { pause } from "./pause.ts";
import { drawScript } from "./script.ts";
import type { Key } from "./target.ts";

export interface Purse {
  key: Key;
  /** The limit on the key's output tokens. Null: no limit. */
  output_tokens_max: number | null;
}

export interface LoadOptions {
  /** The URLs that clients connect to, each with the name of the node behind it. */
  doors: readonly { node: string; url: string }[];
  /** Keys with a limit, each of which several clients use. */
  shared: readonly Purse[];
  /** Creates a key that only one client uses. */
  fresh(): Promise<Purse>;
  model: string;
  clients: number;
  tokens_max: number;
  seed: number;
}

export interface Load {
  /** Stops the clients. Resolves when the last one has its response. */
  stop(): Promise<{ purses: Purse[]; seen: Seen[] }>;
}

/** The number of requests with one key. It is small, so that a wrong sum can only be due to few requests. */
const requests_per_key = 3;
const deadline_ms = 20_000;

export function startLoad(options: LoadOptions): Load {
  const purses = [...options.shared];
  const seen: Seen[] = [];
  let isStopped = false;
  const client = async (index: number) => {
    const chance = chanceFrom(options.seed + 1 + index);
    while (!isStopped) {
      const purse = await purseFor(options, chance, purses);
      for (let request = 0; request < requests_per_key && !isStopped; request++) {
        const id = `${options.seed}-${index}-${seen.length}`;
        const answer = await ask(draw(options, purse, id, chance));
        seen.push(answer);
        // Clients wait after a refusal, as real ones do, and so that they do not flood a node that is down.
        if (answer.status !== 200) await pause(100);
      }
    }
  };
  const clients = Array.from({ length: options.clients }, (_, index) => client(index));
  return {
    async stop() {
      isStopped = true;
      await Promise.all(clients);
      return { purses, seen };
    },
  };
}

async function purseFor({ shared, fresh }: LoadOptions, chance: Chance, purses: Purse[]): Promise<Purse> {
  if (shared.length > 0 && chance.fraction() < 0.3) return chance.pick(shared);
  const purse = await fresh();
  purses.push(purse);
  return purse;
}

function draw({ doors, model, tokens_max }: LoadOptions, { key }: Purse, id: string, chance: Chance) {
  const script = drawScript(id, chance, tokens_max);
  const stream = chance.fraction() < 0.75;
  const leaves_after = chance.fraction() < 0.2 ? chance.between(0, stream ? script.tokens : 0) : null;
  const { node, url } = chance.pick(doors);
  return { url, node, secret: key.secret, key: key.id, model, script, stream, leaves_after, deadline_ms };
}

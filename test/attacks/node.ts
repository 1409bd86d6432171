// Starts a node to attack: a separate process that is monitored from inside and from outside, in front of an engine
// that accepts every request.

import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { faultyPostgres, type Store } from "../faults/stores.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { type Attack, bodyBounds, type Measured, type NodeOptions, type Target } from "./attack.ts";
import { startBeside } from "./beside.ts";
import {
  endlessEngineModel,
  honestEngineModel,
  hostileEngineModel,
  lyingEngineModel,
  type Says,
  startEngine,
} from "./engine.ts";
import { cpu_ms, forgetPeak, peak_bytes, resident_bytes } from "./process.ts";
import type { Stop } from "./watch.ts";

export interface AttackedNode {
  target: Target;
  measure(attack: Attack): Promise<Measured>;
  /** Creates another organization without limits, and returns a key of it. */
  newKey(organization: string): Promise<string>;
  stop(): Promise<void>;
}

const model = "acme/writer-1";
const lyingModel = "acme/liar-1";
const endlessModel = "acme/endless-1";
const hostileModels: Target["hostileModels"] = {
  "openai-chat": "acme/hostile-chat",
  "anthropic-messages": "acme/hostile-messages",
  "openai-responses": "acme/hostile-responses",
};

export async function startAttackedNode({
  limits = "{}",
  answers = "{}",
  hasDatabase = false,
}: NodeOptions = {}): Promise<AttackedNode> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-attack-"));
  const watched = join(folder, "stops");
  const engine = startEngine();
  const database = hasDatabase ? await faultyPostgres() : null;
  const sluice = await startSluice({
    config: `${configOf(engine.port, limits)}\nanswers: ${answers}\n`,
    env: {
      ...{ BUN_OPTIONS: `--preload=${join(import.meta.dir, "watch.ts")}`, ATTACK_WATCH: watched },
      ...(database ? { DATABASE_URL: `postgres://postgres@127.0.0.1:${database.port}/postgres` } : {}),
    },
    store: "pglite",
  });
  const target = await readyTarget(sluice, database, engine.says);
  const prober = await startBeside(sluice.url);
  const stops = (): Stop[] => {
    const lines = existsSync(watched) ? readFileSync(watched, "utf8").split("\n") : [];
    return lines.filter(Boolean).map((line) => JSON.parse(line));
  };

  return {
    target,
    newKey: (organization) => unlimitedKey(sluice, organization),
    async measure(attack) {
      const { pid } = target;
      await prober.says();
      const before = { rss: resident_bytes(pid), cpu: cpu_ms(pid), at_ms: Date.now(), stops: stops().length };
      forgetPeak(pid);
      const sent = await attack.run(target);
      // A stop of the event loop is recorded only when the loop runs again, so this request waits for that.
      await (await fetch(`${target.url}/livez`)).text();
      await Bun.sleep(50);
      const bounds = attack.bounds?.(sent) ?? bodyBounds(sent);
      const step_ms = Math.max(
        0,
        ...stops()
          .slice(before.stops)
          .map(({ wall_ms, cpu_ms: used_ms }) => Math.min(wall_ms, used_ms)),
      );
      const growth_bytes = Math.max(0, peak_bytes(pid) - before.rss);
      const measured = {
        ...{ sent, bounds, step_ms, growth_bytes },
        livez_ms: (await prober.says()).slowest_ms,
        cpu_ms: cpu_ms(pid) - before.cpu,
        took_ms: Date.now() - before.at_ms,
      };
      return { ...measured, broken: [...(sent.problems ?? []), ...beyond(measured)] };
    },
    async stop() {
      prober.stop();
      await sluice.stop();
      await engine.stop();
      await database?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function beyond({ step_ms, growth_bytes, bounds }: Omit<Measured, "broken">): string[] {
  const broken: string[] = [];
  if (step_ms > bounds.step_ms) broken.push(`stood still for ${step_ms.toFixed(0)} ms, more than ${bounds.step_ms}`);
  if (growth_bytes > bounds.growth_bytes)
    broken.push(`grew by ${mibOf(growth_bytes)} MiB, more than ${mibOf(bounds.growth_bytes)}`);
  return broken;
}

export function mibOf(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(1);
}

function configOf(port: number, limits: string): string {
  const entry = (id: string, engineModel: string, price: number, upstream = "main") => `
  - id: ${id}
    created: 1790000000
    context_window: 100000000
    max_output_tokens: 1000
    capabilities: [tools, parallel_tools, vision, reasoning, structured_output, logprobs, files, audio_input]
    prices: { input: ${price / 1000}, cached_input: ${price / 1000}, cache_write: ${price / 1000}, output: ${price / 1000} }
    routes: [{ upstream: ${upstream}, model: ${engineModel} }]`;
  const protocols = Object.entries(hostileModels);
  const url = `url: "http://127.0.0.1:${port}/v1"`;
  const upstreams = protocols.map(([protocol]) => `\n  hostile-${protocol}: { ${url}, protocol: ${protocol} }`);
  const hostile = protocols.map(([protocol, id]) => entry(id, hostileEngineModel, 1, `hostile-${protocol}`));
  return `
upstreams:
  main: { ${url} }${upstreams.join("")}
metering: { currency: USD }
models:${entry(model, honestEngineModel, 1)}${entry(lyingModel, lyingEngineModel, 10_000_000)}${entry(endlessModel, endlessEngineModel, 1)}${hostile.join("")}
plans: { free: {} }
limits: ${limits}
`;
}

/** Returns the target with its keys, after a warm-up. */
async function readyTarget(
  sluice: Sluice,
  database: Store | null,
  engineSays: (what: Says | null) => void,
): Promise<Target> {
  try {
    const { url, pid, stderr: log } = sluice;
    const target = {
      url,
      key: await unlimitedKey(sluice, "attacker"),
      neighbourKey: await unlimitedKey(sluice, "neighbour"),
      model,
      lyingModel,
      endlessModel,
      hostileModels,
      engineSays,
      pid,
      log,
      database,
    };
    await warmUp(target);
    return target;
  } catch (failure) {
    await sluice.stop();
    throw failure;
  }
}

async function unlimitedKey(sluice: Sluice, slug: string): Promise<string> {
  await sluice.json("org", "create", slug, "--plan", "free");
  return (await sluice.json<{ key: string }>("key", "create", "--org", slug, "--name", slug)).key;
}

/**
 * Warms a new node up, because it still compiles code and has a small heap: sends it bodies like those of agents, in
 * every protocol.
 */
async function warmUp({ url, key }: Target): Promise<void> {
  const messages = Array.from({ length: 301 }, (_, at) => ({
    role: at % 2 === 0 ? "user" : "assistant",
    content: `hello ${at} `.repeat(80),
  }));
  const bodies: Record<string, object> = {
    "/v1/chat/completions": { model, max_tokens: 10, messages },
    "/v1/messages": { model, max_tokens: 10, messages },
    "/v1/messages/count_tokens": { model, messages },
    "/v1/responses": { model, max_output_tokens: 10, input: messages, store: false },
    "/v1/responses/compact": { model, input: messages },
  };
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  for (const [path, body] of Object.entries(bodies)) {
    const text = JSON.stringify(body);
    for (let round = 0; round < 20; round++) {
      const answer = await fetch(url + path, { method: "POST", headers, body: text });
      if (!answer.ok) throw new Error(`warming up: ${path} answered ${answer.status} ${await answer.text()}`);
      await answer.text();
    }
  }
}

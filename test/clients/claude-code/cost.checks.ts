/**
 * Measures how much of a plan Claude Code uses: the cost of one task, on a model whose engine reports cached tokens and
 * on one whose engine does not. README.md and docs/clients.md state the figures.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { dollars, nanosOf } from "../../harness/money.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { usageReport } from "../prefix-cache.ts";
import { startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { runAgent } from "./agent.ts";

setDefaultTimeout(600_000);

const model = "qwen/qwen3-coder";
const turns = 50;
const root = join(import.meta.dir, "../../..");

/** Source files of this repository, for the agent to read. */
const sources = [...new Bun.Glob("src/**/*.ts").scanSync({ cwd: root })].sort().slice(0, turns);
const files = Object.fromEntries(sources.map((path, at) => [`file-${at}.ts`, readFileSync(join(root, path), "utf8")]));

const thought =
  "I have seen how this file begins, and what it takes from its neighbours. Before I change anything I want to know how the next one uses it, because a caller that relies on the old order would break without a word.";
const reading = (folder: string): Turn[] =>
  Object.keys(files).map((name) => ({
    text: thought,
    calls: [{ name: "Read", arguments: { file_path: join(folder, name) } }],
  }));

/** Runs Claude Code once, and returns how much of the starter plan's limit that used, in nanos. */
async function takenBy(kind: "cached" | "uncached", turnsIn: (folder: string) => Turn[]): Promise<number> {
  const engine = startScriptedEngine(await usageReport(kind === "cached"));
  const service = await startSluice({ env: { SLUICE_UPSTREAM_URL: engine.url } });
  try {
    await service.json("org", "create", "acme", "--plan", "starter");
    const { key } = await service.json<{ key: string }>("key", "create", "--org", "acme", "--name", "agent");
    let played: Turn[] = [];
    const done = await runAgent({
      url: service.url,
      model,
      env: { ANTHROPIC_AUTH_TOKEN: key },
      files,
      run_ms: 500_000,
      prompt(folder) {
        played = [...turnsIn(folder), { text: "It is all done." }];
        engine.play(played);
        return "hi";
      },
    });
    expect(done).toMatchObject({ failed: false, result: "It is all done." });
    expect(engine.asked).toHaveLength(played.length);
    return await settledNanos(service);
  } finally {
    await service.stop();
    engine.stop();
  }
}

async function settledNanos(service: Sluice): Promise<number> {
  let month = { used: dollars(0), held: dollars(1) };
  await until(
    async () => {
      ({ month } = await service.json<{ month: typeof month }>("usage", "show", "acme"));
      return nanosOf(month.held) === 0;
    },
    10_000,
    "the last request to be settled",
  );
  return nanosOf(month.used);
}

/** The cost of one task in nanos, as docs/clients.md states it. */
function figures(): { cached: number; uncached: number } {
  const text = readFileSync(join(root, "docs/clients.md"), "utf8");
  const said = /costs about \$(0\.\d+) on .*?, and \$(0\.\d+) if it does not/.exec(text);
  return { cached: Number(said?.[1]) * 1e9, uncached: Number(said?.[2]) * 1e9 };
}

test.each(["cached", "uncached"] as const)(
  "a task of 50 turns, its input %s, takes what the document says",
  async (kind) => {
    const nanos = await takenBy(kind, reading);
    console.log(`50 turns, input ${kind}: ${nanos} nanos`);
    const said = figures()[kind];
    expect(nanos).toBeWithin(0.85 * said, 1.15 * said);
  },
);

test("a greeting takes less than half a percent of a starter session", async () => {
  const nanos = await takenBy("uncached", () => []);
  console.log(`a greeting: ${nanos} nanos`);
  expect(nanos).toBeWithin(1, 5_000_000);
});

/**
 * Codex with no setting changed but its base URL, in a session that outgrows the context window: Codex has the service
 * compact the conversation, and facts from the model's earlier texts survive. `CODEX_TURNS=200` makes the session
 * longer.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import { usageByLength } from "../prefix-cache.ts";
import { type ChatAsked, type ScriptedEngine, startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { compactions, isAskedForSummary, patching, type Run, type Session, scripting, startSession } from "./agent.ts";

const turns = Number(process.env.CODEX_TURNS ?? 24);
/** The number of turns, with their responses, after which Codex compacts the conversation once. */
const turns_compaction = 8;

setDefaultTimeout(turns * 10_000);

/** One model for each of the three ways in which Codex sends its tools; its prompts differ, too. */
const families = [model, patching, scripting];

let engine: ScriptedEngine;
let service: Service;
beforeAll(async () => {
  engine = startScriptedEngine(usageByLength);
  service = await startService({ engineUrl: engine.url, models: families.slice(1) });
});
afterAll(async () => {
  await service.stop();
  engine.stop();
});

const begun = (id: string): Session => startSession({ url: service.url, key: service.key, model: id, builtIn: true });
const textOf = (content: unknown) => (typeof content === "string" ? content : JSON.stringify(content));
/**
 * The status of each request that runs the model, over HTTP or a WebSocket. Requests that only transfer the
 * conversation are left out.
 */
const posts = ({ asked }: Run) =>
  asked.filter(({ method, body }) => method !== "GET" && body?.generate !== false).map(({ status }) => status);

/**
 * Simulates an engine whose responses contain facts. The facts are only in the model's texts, because Codex itself
 * preserves the user's texts.
 */
class Memory {
  readonly planted: string[] = [];
  /** The facts from earlier responses that were missing from a request. */
  readonly lost: string[] = [];

  /** Returns a response with a new fact, or a summary that repeats all facts in the request. */
  answer(asked: ChatAsked): Turn {
    const told = new Set(JSON.stringify(asked.messages).match(/fact-\d+-[a-z0-9]{8}/g) ?? []);
    this.lost.push(...this.planted.filter((fact) => !told.has(fact)));
    if (isAskedForSummary(asked)) return { text: `Verbatim: ${[...told].join(" ")}` };
    const fact = `fact-${this.planted.length}-${crypto.randomUUID().slice(0, 8)}`;
    this.planted.push(fact);
    return { text: `${fact}. ${"The gardener counts her tulips. ".repeat(60)}` };
  }
}

test("a session goes on after its first compaction, where only the base URL was changed", async () => {
  engine.play([{ text: "Hello. fact-1-aaaaaaaa" }, { text: "fact-1-aaaaaaaa" }, { text: "Gladly." }]);
  using session = begun(model);
  const first = await session.turn("say hello");
  expect([first.code, first.answer, posts(first)]).toEqual([0, "Hello. fact-1-aaaaaaaa", [200]]);
  const resumed = await session.turn("go on", ["model_auto_compact_token_limit=50"]);
  expect([resumed.code, resumed.answer, posts(resumed)]).toEqual([0, "Gladly.", [200, 200]]);
  expect(compactions(resumed)).toBe(1);
  const told = engine.asked.at(-1)!.messages.map(({ role, content }) => [role, textOf(content)]);
  expect(told.some(([role]) => role === "assistant")).toBe(false);
  expect(JSON.stringify(told)).toContain("fact-1-aaaaaaaa");
});

describe.each(families)("a session of many turns, with %s", (id) => {
  test("has no failed turn, and knows what was said before each compaction", async () => {
    const memory = new Memory();
    engine.play((asked) => memory.answer(asked));
    using session = begun(id);
    const first = await session.turn("say hello");
    expect([first.code, posts(first)]).toEqual([0, [200]]);
    const { input_tokens = 0, output_tokens = 0 } = first.usage ?? {};
    const limit = input_tokens + turns_compaction * output_tokens;
    let compacted = 0;
    for (let turn = 2; turn <= turns; turn++) {
      const run = await session.turn(`go on, ${turn}`, [`model_auto_compact_token_limit=${limit}`]);
      const seen = { turn, code: run.code, failed: posts(run).filter((status) => status !== 200), lost: memory.lost };
      expect(seen).toEqual({ turn, code: 0, failed: [], lost: [] });
      compacted += compactions(run);
    }
    console.log(`${id}: ${turns} turns, ${compacted} compactions, ${memory.planted.length} facts, none lost`);
    expect(memory.planted).toHaveLength(turns);
    expect(compacted).toBeGreaterThanOrEqual(Math.floor(turns / 20));
  });
});

/**
 * Codex with no setting changed but its base URL, working for a hundred turns in one run, each with a command, through
 * compactions and two restarts of nodes: `npm run test:clients -- codex-turns`. Two nodes are behind one address. The
 * same work over POST shows how many bytes the WebSocket saves.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { model, type Service, startService } from "../../harness/engine.ts";
import { startPostgres } from "../../harness/services.ts";
import { usageByLength } from "../prefix-cache.ts";
import { type ChatAsked, type ScriptedEngine, startScriptedEngine, type Turn } from "../scripted-engine.ts";
import { compactions, isAskedForSummary, type Run, type RunOptions, startSession } from "./agent.ts";

const turns = Number(process.env.CODEX_TURNS ?? 100);
const limit_ms = 8 * 60_000;
/** The number of tokens after which Codex has the conversation compacted. */
const work_tokens = 12_000;

setDefaultTimeout(10 * 60_000);

let engine: ScriptedEngine;
let postgres: Awaited<ReturnType<typeof startPostgres>>;
let key: string;
let started: Promise<Service>;
const nodes: Service[] = [];

const startNode = (dataDir?: string) =>
  startService({
    engineUrl: engine.url,
    sluice: {
      store: "pglite",
      env: { DATABASE_URL: postgres.url },
      // With a `dataDir`, the database already has an organization.
      ...(dataDir === undefined ? {} : { dataDir }),
    },
  });
beforeAll(async () => {
  engine = startScriptedEngine(usageByLength);
  postgres = await startPostgres();
  nodes.push(await startNode());
  key = nodes[0]!.key;
  nodes.push(await startNode("unused"));
});
afterAll(async () => {
  await started?.catch(() => undefined);
  await Promise.all(nodes.map((node) => node.stop()));
  await postgres?.stop();
  engine?.stop();
});

/** Drains and stops the first node, and starts another in its place. Meanwhile new connections go to the other node. */
async function restart(): Promise<Service> {
  const [leaving] = nodes.splice(0, 1);
  const [, next] = await Promise.all([leaving!.stop(), startNode("unused")]);
  nodes.push(next);
  return next;
}

/**
 * The number of the latest turn that a request mentions, by the text `turn-N-done` in the commands' output or a
 * summary.
 */
const done = ({ messages }: ChatAsked) =>
  Math.max(0, ...[...JSON.stringify(messages).matchAll(/turn-(\d+)-done/g)].map(([, number]) => Number(number)));

/**
 * Simulates the engine: each turn runs a command that writes the turn's number into a file. The next turn's number is
 * derived from the conversation alone.
 */
function answer(asked: ChatAsked, restartsAt: number[]): Turn {
  const next = done(asked) + 1;
  if (isAskedForSummary(asked)) return { text: `So far: turn-${next - 1}-done.` };
  if (next > turns) return { text: "It is all done." };
  const cmd = `echo ${next} >>turns.txt; seq 1 150 | tr '\\n' ' '; echo turn-$(( ${next} ))-done`;
  const turn: Turn = { text: `Number ${next}.`, calls: [{ name: "exec_command", arguments: { cmd } }] };
  // Starts a restart if one is due and both nodes are up.
  if (next < (restartsAt[0] ?? Number.POSITIVE_INFINITY) || nodes.length < 2) return turn;
  restartsAt.shift();
  started = restart();
  return { ...turn, silent_ms: 1000 };
}

async function work(restartsAt: number[], options: Partial<RunOptions> = {}): Promise<Run> {
  const base = { url: () => nodes[0]!.url, key, model, builtIn: true as const, limit_ms };
  engine.play([{ text: "Hello." }]);
  using trial = startSession({ ...base, ...options });
  const { usage } = await trial.turn("Say hello.");
  const limit = usage!.input_tokens + work_tokens;
  engine.play((asked) => answer(asked, restartsAt));
  using session = startSession({ ...base, ...options, config: `model_auto_compact_token_limit = ${limit}` });
  return await session.turn("Count.");
}

const posts = ({ asked }: Run) => asked.filter(({ method }) => method !== "GET");
const numbers = Array.from({ length: turns }, (_, at) => `${at + 1}\n`).join("");
const perTurn_kb = (run: Run) => posts(run).reduce((all, { bytes }) => all + bytes, 0) / turns / 1000;
const told = (run: Run) => {
  const statuses = Object.entries(Object.groupBy(run.asked, ({ method, status }) => `${method} ${status}`));
  return statuses.map(([name, all]) => `${all!.length} × ${name}`).join(", ");
};
const told_kb: Record<string, number> = {};

test("over WebSockets, with two restarts: each turn is done once, in order, and each answer is in the books once", async () => {
  const run = await work([Math.floor(turns / 3), Math.floor((2 * turns) / 3)]);
  told_kb.socket = perTurn_kb(run);
  const seen = `${turns} turns, ${compactions(run)} compactions, ${told(run)}`;
  console.log(`WebSocket: ${seen}; ${told_kb.socket.toFixed(1)} KB sent a turn, ${(run.took_ms / 1000).toFixed(0)} s`);
  const complaints = run.errors.split("\n").filter((line) => !line.startsWith("Model metadata"));
  expect([run.code, run.answer, complaints]).toEqual([0, "It is all done.", []]);
  expect(run.files["turns.txt"]).toBe(numbers);
  expect(compactions(run)).toBeGreaterThanOrEqual(turns >= 100 ? 2 : 0);
  expect(run.asked.filter(({ status }) => status === 101)).toHaveLength(3);
  await started;
  const rows = await nodes[0]!.json<{ outcome: string }[]>("request", "list", "--limit", "1000");
  // One response is older: that of the session that measured the input tokens of a first request.
  expect(rows.filter(({ outcome }) => outcome === "completed")).toHaveLength(engine.asked.length + 1);
  expect(new Set(rows.map(({ outcome }) => outcome))).toEqual(new Set(["completed"]));
});

test("by POST, the same work", async () => {
  const instead: RunOptions["instead"] = ({ headers }) =>
    headers.has("sec-websocket-key") ? new Response(null, { status: 426 }) : undefined;
  const run = await work([], { instead });
  told_kb.post = perTurn_kb(run);
  console.log(`POST: ${compactions(run)} compactions, ${told(run)}; ${told_kb.post.toFixed(1)} KB sent a turn`);
  expect([run.code, run.answer]).toEqual([0, "It is all done."]);
  expect(run.files["turns.txt"]).toBe(numbers);
  expect(told_kb.socket!).toBeLessThan(told_kb.post);
});

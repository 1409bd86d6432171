// `npm run failover -- GATEWAY`: sends the faults of FailoverBench in Chat Completions through a gateway with its own
// settings for a spare. With `sluice --continue`, the spare continues a broken response where FailoverBench has a spare
// that can. The first engine fails, and the second one is healthy. Prints what a client sees of each fault, and the
// score by FailoverBench's rules for streams. docs/compared.md has the findings.

import { ended, litellm, portkey, versions } from "../../bench/speed/others.ts";
import { bodyOf, type Seen, seen } from "./callers.ts";
import { startRig } from "./rig.ts";
import { canonical, startWall, type Wall } from "./wall.ts";

const faults = "s01 s02 s03 s04 s05 s06 s07 s08 s09 s10 s11 s12 s13 s14 s16".split(" ");
/** The model whose first engine is down for a while and then comes back. */
const flapping = "s15-streamed";
const flaps = { requests: 20, interval_ms: 4_000, down_ms: 60_000, back_ms: 30_000 };
/**
 * Each combination of a fault and streaming or not has a model of its own, so that the gateway's experience with one
 * does not affect another.
 */
const names = [...faults.flatMap((fault) => [`${fault}-streamed`, `${fault}-whole`]), flapping];
/** How long a gateway waits for an engine, and on the next line how long its client waits, in milliseconds. */
const engine_ms = 2_000;
const client_ms = 30_000;

interface Gateway {
  url: string;
  headers: Record<string, string>;
  model(name: string): string;
  stop(): Promise<void>;
}

type Start = (first: Wall, spare: Wall) => Promise<Gateway>;

const gateways: Record<string, { version: string; start: Start }> = {
  litellm: { version: versions.litellm, start: startLitellm },
  portkey: { version: versions.portkey, start: startPortkey },
};

async function startLitellm(first: Wall, spare: Wall): Promise<Gateway> {
  const engine = (name: string, { url }: Wall) => ({
    model_name: name,
    litellm_params: { model: `hosted_vllm/${name}`, api_base: url, api_key: "x", timeout: engine_ms / 1000 },
  });
  const fallbacks = names.map((name) => ({ [name]: [`ok-${name}`] }));
  const { url, child } = await litellm({
    model_list: names.flatMap((name) => [engine(name, first), engine(`ok-${name}`, spare)]),
    litellm_settings: { fallbacks, context_window_fallbacks: fallbacks },
    general_settings: { master_key: "sk-failover" },
  });
  return { url, headers: { authorization: "Bearer sk-failover" }, model: (name) => name, stop: () => ended(child) };
}

async function startPortkey(first: Wall, spare: Wall): Promise<Gateway> {
  const { url, child } = await portkey();
  const target = ({ url }: Wall, model: object) => ({ provider: "openai", api_key: "x", custom_host: url, ...model });
  const config = {
    strategy: { mode: "fallback" },
    request_timeout: engine_ms,
    targets: [target(first, {}), target(spare, { override_params: { model: "ok-spare" } })],
  };
  const headers = { "x-portkey-config": JSON.stringify(config) };
  return { url, headers, model: (name) => name, stop: () => ended(child) };
}

/** The outcome that a client sees: the whole response, an error, or a response that looks complete but is not. */
interface Verdict {
  words: string;
  kind: "whole" | "error" | "untrue" | "nothing";
  model: string | null;
  took_ms: number;
}

async function verdictOf({ url, headers, model }: Gateway, name: string, isStreamed: boolean): Promise<Verdict> {
  const began_ms = performance.now();
  const verdict = (kind: Verdict["kind"], words: string, model: string | null = null): Verdict => ({
    ...{ kind, words, model },
    took_ms: performance.now() - began_ms,
  });
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(bodyOf("chat", model(name), isStreamed)),
      signal: AbortSignal.timeout(client_ms),
    });
    const heard = await seen(response);
    return verdict(kindOf(heard), worded(heard), heard.model);
  } catch (failure) {
    const isLate = failure instanceof DOMException && failure.name === "TimeoutError";
    return isLate
      ? verdict("nothing", `nothing for ${client_ms / 1000} s`)
      : verdict("error", "the connection broke off");
  }
}

function kindOf({ status, text, code }: Seen): Verdict["kind"] {
  if (status !== 200 || code !== null) return "error";
  return text === canonical ? "whole" : "untrue";
}

function worded({ status, text, isComplete, code }: Seen): string {
  if (status === 200 && code === null && text === canonical) return isComplete ? "whole" : "whole, without an end";
  if (status !== 200) return `error ${status}`;
  if (code !== null) return text === "" ? "error" : `error after ${text.split(" ").length} words`;
  const words = text === "" ? 0 : text.split(" ").length;
  return isComplete ? `NOT WHOLE, and said to be: ${words} words` : `ends after ${words} words without an error`;
}

type Score = "pass" | "partial" | "safe" | "fail";

/**
 * The score by the rules of FailoverBench (scenarios/catalogue.yaml, methodology 0.1) for a stream. `partial`: the
 * response is complete, but the gateway did not follow the bench's advice. `safe`: a clean error. `first` is the number
 * of requests that the first engine got.
 */
function scoreOf(fault: string, { kind, model, took_ms }: Verdict, first: number): Score {
  if (kind === "untrue" || kind === "nothing") return "fail";
  if (["s02", "s04", "s16"].includes(fault) && first > 6) return "fail";
  if (["s12", "s13"].includes(fault) && first !== 1) return "fail";
  if (fault === "s13") return kind === "error" ? "pass" : "partial";
  if (kind === "error") return "safe";
  // The response must name the spare's model.
  if (fault === "s16" && !model?.includes("ok-")) return "fail";
  const isAdvised =
    { s01: first > 1 && took_ms >= 1_800, s03: first > 1, s06: first === 1, s07: took_ms <= 15_000 }[fault] ?? true;
  return isAdvised ? "pass" : "partial";
}

/**
 * Passes if every request succeeds while the first engine is down, and if that engine is used again soon after it is
 * back.
 */
async function flap(gateway: Gateway, first: Wall): Promise<{ words: string; score: Score }> {
  const { requests, interval_ms, down_ms, back_ms } = flaps;
  const asked = () => first.asked.filter((model) => model === flapping).length;
  const began_ms = performance.now();
  const verdicts: Verdict[] = [];
  let back: { askedBefore: number; isUsed: boolean } | null = null;
  for (let index = 0; index < requests; index++) {
    await Bun.sleep(began_ms + index * interval_ms - performance.now());
    if (!back && performance.now() - began_ms >= down_ms) {
      first.set(flapping, "ok");
      back = { askedBefore: asked(), isUsed: false };
    }
    verdicts.push(await verdictOf(gateway, flapping, true));
    const isSoon = performance.now() - began_ms <= down_ms + back_ms;
    if (back && isSoon && asked() > back.askedBefore) back.isUsed = true;
  }
  const whole = verdicts.filter(({ kind }) => kind === "whole").length;
  const words = `${whole} of ${requests} whole, ${back?.isUsed ? "and" : "NOT"} back at the first`;
  if (verdicts.some(({ kind }) => kind === "untrue" || kind === "nothing")) return { words, score: "fail" };
  return { words, score: whole === requests && back?.isUsed ? "pass" : "fail" };
}

async function main([name, option]: readonly (string | undefined)[]): Promise<number> {
  if (name === "sluice" && (option === undefined || option === "--continue")) return ours(option !== undefined);
  const gateway = name === undefined ? undefined : gateways[name];
  if (!gateway || option !== undefined) {
    console.error(`usage: npm run failover -- sluice [--continue]|${Object.keys(gateways).join("|")}`);
    return 2;
  }
  const walls = await Promise.all([startWall(), startWall()]);
  const started = await gateway.start(walls[0]!, walls[1]!);
  console.log(`${name} ${gateway.version}`);
  await table(started, walls);
  await started.stop();
  await Promise.all(walls.map((wall) => wall.stop()));
  return 0;
}

/** In the scenario S14, the spare cannot continue a response. */
const cannotContinue = "s14";

async function ours(isContinued: boolean): Promise<number> {
  const timeouts = `{ first_part_spare_ms: ${engine_ms}, first_part_ms: ${engine_ms}, idle_ms: ${engine_ms} }`;
  const routes = (name: string) => [
    { wall: 0, model: name, contextWindow: 4_096 },
    { wall: 1, model: `ok-${name}`, priority: 1, continues: isContinued && !name.startsWith(cannotContinue) },
  ];
  const rig = await startRig(names.map((name) => ({ id: `acme/${name}`, routes: routes(name), timeouts })));
  const headers = { authorization: `Bearer ${rig.sluice.key}` };
  const { url } = rig.sluice;
  await table({ url, headers, model: (name) => `acme/${name}`, stop: () => rig.stop() }, rig.walls);
  await rig.stop();
  return 0;
}

async function table(gateway: Gateway, walls: readonly Wall[]): Promise<void> {
  console.log("fault  streamed | whole | engines asked, streamed and whole | FailoverBench of the stream");
  const scores: Score[] = [];
  for (const fault of faults) {
    const rows = [];
    for (const isStreamed of [true, false]) {
      const name = `${fault}-${isStreamed ? "streamed" : "whole"}`;
      const before = walls.map(({ asked }) => asked.length);
      const verdict = await verdictOf(gateway, name, isStreamed);
      rows.push({ verdict, asked: walls.map(({ asked }, at) => asked.length - before[at]!).slice(0, 2) });
    }
    const [streamed, whole] = rows;
    const score = scoreOf(fault, streamed!.verdict, streamed!.asked[0]!);
    scores.push(score);
    const askedInAll = rows.map(({ asked }) => asked.join("+")).join(", ");
    console.log(`${fault}    ${streamed!.verdict.words} | ${whole!.verdict.words} | ${askedInAll} | ${score}`);
  }
  const { words, score } = await flap(gateway, walls[0]!);
  console.log(`s15    ${words} | | | ${score}`);
  const counts = Map.groupBy([...scores, score], (one) => one);
  console.log([...counts].map(([one, all]) => `${all.length} ${one}`).join(", "));
}

process.exitCode = await main(process.argv.slice(2));

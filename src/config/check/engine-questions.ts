/**
 * Questions (probe requests) about the engine itself: its protocols, its metrics, its refusals, and what it does when a
 * client leaves.
 */
import { imageUrlProblem } from "../../core/inference/media.ts";
import { type UpstreamProtocol, upstreamProtocols } from "../../core/upstream/codecs.ts";
import { engineLoadOf, generatedTokens } from "../../features/probing/engine-load.ts";
import { resolve } from "../../features/probing/resolve.ts";
import { type Asking, says } from "./asking.ts";
import { type CheckQuestion, type Judged, no, taken, unanswered, unknown, yes } from "./question.ts";

const speaks = (protocol: UpstreamProtocol): CheckQuestion => ({
  name: `protocol_${protocol}`,
  does: `speaks ${protocol}`,
  ask: async (engine) => taken(await engine.put({}, { protocol })),
});

const unknownModel: CheckQuestion = {
  name: "unknown_model",
  does: "refuses a model that it does not have",
  ask: async (engine) => {
    const { end, result } = await engine.put({}, { model: "sluice-check/no-such-model" });
    if (result) return no("answers for any name");
    return end.kind === "refused" ? yes(`${end.status}`) : unknown(end.kind);
  },
};

const path = "/metrics";
const metricsOf = (engine: Asking) => engine.page(engine.upstream.load?.path ?? path);

const metrics: CheckQuestion = {
  name: "metrics",
  does: "has metrics",
  ask: async (engine) => {
    const page = await metricsOf(engine);
    return page !== null && /^# TYPE /m.test(page) ? yes("in Prometheus' form") : no(`no page at ${path}`);
  },
};

const load: CheckQuestion = {
  name: "load",
  does: "says how busy it is",
  isShort: true,
  expects: (dialect) => (dialect.load.waiting.length > 0 ? "yes" : "unknown"),
  ask: async (engine) => {
    const page = await metricsOf(engine);
    const seen = page === null ? null : engineLoadOf(page, engine.dialect.load);
    return seen
      ? yes(`${seen.waiting} requests wait`)
      : no(page === null ? `no page at ${path}` : "no metric of that name");
  },
};

const settled_ms = 400;
const settling_ms_max = 5_000;
/** An answer with fewer tokens ends before a client can leave it. */
const worth_tokens_min = 24;
/** An engine that answers faster may be done before it learns that its client left. */
const slow_ms_min = 1_500;

/**
 * Waits until the engine generates no more. Returns how many tokens it has generated in all, or null if it reports
 * none.
 */
async function settled(engine: Asking): Promise<number | null> {
  const names = engine.dialect.load.generated;
  const count = async () => generatedTokens((await metricsOf(engine)) ?? "", names);
  let before = await count();
  for (const end_ms = performance.now() + settling_ms_max; performance.now() < end_ms; ) {
    await Bun.sleep(settled_ms);
    const now = await count();
    if (now === before) return now;
    before = now;
  }
  return null;
}

async function stopsFor(engine: Asking, stream: boolean): Promise<Judged> {
  const long = { stream, turns: [says("Count three times.")] };
  const before = await settled(engine);
  if (before === null) return unknown("no metric counts its tokens, or others use it");
  const whole = await engine.put(long);
  const between = await settled(engine);
  const tokens = whole.outputTokens ?? 0;
  if (!whole.result || tokens < worth_tokens_min)
    return unanswered(whole) ?? unknown("its answer is too short to leave");
  if (between === null || between - before !== tokens) return unknown("its count is not of this answer alone");
  await engine.put(long, { leave: stream ? "first piece" : Math.ceil(whole.took_ms / 3) });
  const after = await settled(engine);
  if (after === null) return unknown("others use it");
  const made = after - between;
  if (made < tokens) return yes(`stops after ${made} of ${tokens} tokens`);
  return whole.took_ms < slow_ms_min ? unknown("it is done before it can stop") : no(`makes all ${tokens} tokens`);
}

const leaver = (way: "streamed" | "whole"): CheckQuestion => ({
  name: `leaver_${way}`,
  does: `stops when a client leaves an answer that is ${way === "streamed" ? "" : "not "}streamed`,
  expects: ({ stopsForLeaver }) => (stopsForLeaver[way] ? "yes" : "no"),
  ask: (engine) => stopsFor(engine, way === "streamed"),
});

/** Whether every address of the host is of this machine or of a private network. */
async function isNear(url: string): Promise<boolean> {
  const { hostname } = new URL(url);
  const isPrivate = (host: string) =>
    imageUrlProblem(`http://${host}/`, { deny_private: true, denied_hosts: [] }) !== null;
  if (/^\[|^[\d.]+$/.test(hostname)) return isPrivate(hostname);
  const { addresses } = await resolve(hostname, { family: "all", servers: [] }).catch(() => ({ addresses: [] }));
  return addresses.length > 0 && addresses.every((one) => isPrivate(one.includes(":") ? `[${one}]` : one));
}

const long_tokens_max = 2_000_000;

const tooLong: CheckQuestion = {
  name: "too_long",
  does: "says that a prompt is beyond its context",
  isLong: true,
  ask: async (engine) => {
    const { contextTokens, upstream } = engine;
    if (!(await isNear(upstream.url))) return unknown("not asked: its address is public");
    if (contextTokens === null || contextTokens > long_tokens_max)
      return unknown("not asked: its context is not known, or very long");
    const heard = await engine.put({ turns: [says("sluice ".repeat(Math.ceil(contextTokens * 1.1)))] });
    if (heard.end.kind === "too_long") return yes("context_length_exceeded");
    return heard.result ? no("answers it") : unanswered(heard)!;
  },
};

export const engineQuestions: readonly CheckQuestion[] = [
  ...upstreamProtocols.map(speaks),
  unknownModel,
  metrics,
  load,
  leaver("streamed"),
  leaver("whole"),
  tooLong,
];

// Runs one session: first the keys, the load and the faults; then a quiet time, until the gateway must have recorded
// every request; then the judge.

import { chanceFrom } from "./chance.ts";
import { ask, type Seen } from "./client.ts";
import type { Engine } from "./engine.ts";
import { faultsOf, injure } from "./faults.ts";
import { type Account, type Finding, judge, uncounted } from "./judge.ts";
import { type Purse, startLoad } from "./load.ts";
import { pause } from "./pause.ts";
import type { Script } from "./script.ts";
import type { Key, Link, Site, Target, Usage } from "./target.ts";

export interface Session {
  seed: number;
  faults: number;
  clients: number;
  tokens_max: number;
  /** Restricts the faults to those whose name contains this text. */
  only: string;
}

export interface Outcome {
  injuries: Map<string, number>;
  requests: number;
  answered: number;
  refused: number;
  delivered_tokens: number;
  uncounted_tokens: number;
  findings: Finding[];
}

export interface Stage {
  target: Target;
  site: Site;
  engine: Engine;
  /** The links (proxies that can be cut) of this program: in front of each node, and in front of the engine. */
  links: Link[];
  doors: { node: string; url: string }[];
}

/** The limits of the shared keys, in output tokens: one that is soon used up, and one that lasts for a while. */
export const limits = [300, 3_000];

export async function runSession(stage: Stage, session: Session): Promise<Outcome> {
  const { site, engine, target } = stage;
  const chance = chanceFrom(session.seed);
  const injured = new Map<string, number>();
  let made = 0;
  const purse = async (output_tokens_max: number | null): Promise<Purse> => {
    const name = `proof-${session.seed}-${made++}`;
    return { key: await patiently(() => site.createKey(name, output_tokens_max)), output_tokens_max };
  };
  const shared = [];
  for (const limit of limits) shared.push(await purse(limit));
  const load = startLoad({
    doors: stage.doors,
    shared,
    fresh: () => purse(null),
    model: site.model,
    clients: session.clients,
    tokens_max: session.tokens_max,
    seed: session.seed,
  });
  const faults = faultsOf({ parts: site.parts, inside: site.links, outside: stage.links });
  const chosen = faults.filter(({ name }) => name.includes(session.only));
  if (chosen.length === 0) throw new Error(`No fault of ${target.name} has "${session.only}" in its name.`);
  const injuries = await injure(chosen, session.faults, chance, (name) =>
    injured.set(name, (injured.get(name) ?? 0) + 1),
  );
  const { purses, seen } = await load.stop();
  const usage = await settledUsage(stage, purses);
  const truth = {
    book: engine.book,
    injuries,
    uncounted_ms_max: target.uncounted_ms_max,
    cut_off_ms_max: target.cut_off_ms_max,
    estimate_share_max: target.estimate_share_max,
  };
  const accounts = purses.map((entry) => accountOf(entry, seen, usage));
  const findings = accounts.flatMap((account) => judge(account, truth));
  findings.push(...(await leaks(stage, purses, usage)));
  engine.forget();
  return {
    injuries: injured,
    requests: seen.length,
    answered: seen.filter(({ status }) => status === 200).length,
    refused: seen.filter(({ status }) => status === (target.limit_status ?? 429)).length,
    delivered_tokens: seen.reduce((total, { tokens }) => total + tokens, 0),
    uncounted_tokens: accounts.reduce((total, account) => total + uncounted(account), 0),
    findings,
  };
}

function accountOf({ key, output_tokens_max }: Purse, seen: readonly Seen[], usage: Map<string, Usage>): Account {
  return {
    key: key.id,
    output_tokens_max,
    seen: seen.filter((entry) => entry.key === key.id),
    usage: usage.get(key.id) ?? { input_tokens: 0, output_tokens: 0 },
  };
}

/**
 * Returns the usage that the gateway has recorded: once the engine is idle and the usage does not change any more, or
 * when the target's time for recording is over.
 */
async function settledUsage({ site, engine, target }: Stage, purses: readonly Purse[]): Promise<Map<string, Usage>> {
  const keys = purses.map(({ key }) => key);
  const deadline_ms = Date.now() + target.settled_ms_max;
  let before = "";
  for (;;) {
    const running = await patiently(() => site.running());
    const usage = await patiently(() => site.usage(keys));
    const now = JSON.stringify([...usage]);
    const isStill = now === before && engine.active() === 0 && (running ?? 0) === 0;
    // If the gateway does not report how many requests are running, its usage is read repeatedly until the deadline.
    if ((isStill && running !== null) || Date.now() > deadline_ms) return usage;
    before = now;
    await pause(500);
  }
}

/**
 * Finds leaks, which are parts of a limit that are still reserved for requests that ended long ago. A key must be able
 * to use everything that its limit leaves.
 */
async function leaks(stage: Stage, purses: readonly Purse[], usage: Map<string, Usage>): Promise<Finding[]> {
  const findings: Finding[] = [];
  const running = await stage.site.running();
  if (running !== null && running > 0)
    findings.push({ verdict: "leaked", tokens: 0, says: `${running} requests are held though nothing runs` });
  for (const purse of purses) {
    const leak = await leakOf(stage, purse, usage);
    if (leak) findings.push(leak);
  }
  return findings;
}

/**
 * How long a request is repeated while the gateway is too busy, which does not count as a refusal. Each attempt asks
 * for as many tokens as the key's recorded usage leaves at that time.
 */
const spending_ms_max = 120_000;

async function leakOf(stage: Stage, purse: Purse, usage: Map<string, Usage>): Promise<Finding | null> {
  const { key, output_tokens_max } = purse;
  const deadline_ms = Date.now() + spending_ms_max;
  for (let attempt = 0, left = usage; ; attempt++) {
    const tokens = (output_tokens_max ?? 0) - (left.get(key.id)?.output_tokens ?? 0);
    if (tokens < 1) return null;
    const { status } = await spend(stage, key, tokens, attempt);
    if (status === 200) return null;
    const says = `${key.id}: ${tokens} of ${output_tokens_max} tokens are left, and a request for them got ${status ?? "no answer"}`;
    const isBusy = status === null || status >= 500;
    if (!isBusy || Date.now() > deadline_ms) return { verdict: "leaked", tokens, says };
    left = await settledUsage(stage, [purse]);
  }
}

function spend({ site, doors }: Stage, key: Key, tokens: number, attempt: number): Promise<Seen> {
  const id = `leak-${key.id}-${attempt}`;
  const script: Script = { id, tokens, gap_ms: 0, report: "true", dies_after: null, deaths: 0 };
  const door = doors[0] as Stage["doors"][number];
  const asking = { ...door, key: key.id, secret: key.secret, model: site.model, script, stream: false };
  return ask({ ...asking, leaves_after: null, deadline_ms: 20_000 });
}

/** Repeats an action that fails, because a gateway may need a moment after a fault has ended. */
async function patiently<T>(act: () => Promise<T>): Promise<T> {
  const deadline_ms = Date.now() + 60_000;
  for (;;) {
    try {
      return await act();
    } catch (failure) {
      if (Date.now() > deadline_ms) throw failure;
      await pause(200);
    }
  }
}

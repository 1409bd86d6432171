// Runs the fault test once: load on three nodes and two engines, faults drawn by the seed, and then the checks.

import { setLimits } from "../harness/limits.ts";
import { newMember } from "../harness/members.ts";
import { administrator, faultsPlan, requests_per_minute } from "./administrator.ts";
import { chanceOf } from "./chance.ts";
import { injector } from "./injector.ts";
import type { InjuryName } from "./injuries.ts";
import { judge, type Verdict } from "./judge.ts";
import { type KeptVerdict, startKeptLoad } from "./kept-load.ts";
import { startLoad } from "./load.ts";
import { type Rig, withRig } from "./rig.ts";
import { ask } from "./stores.ts";

export interface Run {
  seed: number;
  injuries: ReadonlyMap<InjuryName, number>;
  verdict: Verdict;
  /** The verdict on the clients whose responses are stored. Its objections are also in `verdict`. */
  kept: KeptVerdict;
  took_ms: number;
}

const tokensPerSecond = 150;
const organizations = 3;
const kept_clients = 8;

export async function faultRun(options: {
  seed: number;
  injuries: number;
  clients: number;
  gap_ms: number;
  /** The limits of each organization's plan, as in sluice.yaml. */
  plan: { session?: number; concurrent_requests?: number };
  redisIsCluster?: boolean;
  /** Restricts the faults to those whose name contains one of these words; all faults by default. */
  only?: string;
}): Promise<Run> {
  const started = performance.now();
  const { seed, redisIsCluster = false } = options;
  const plan = { ...options.plan, requests_per_minute };
  const chance = chanceOf(seed);
  const setUp = { nodes: 3, plan: JSON.stringify(plan), requests_max: 2_000_000, engines: 2, redisIsCluster };
  return withRig(setUp, async (rig) => {
    const keys = [rig.key];
    while (keys.length < organizations) keys.push((await rig.organization()).key);
    keys.push(...(await teamOfTwo(rig)), ...(await keysOfAPerson(rig)));
    const load = startLoad({
      nodes: rig.nodes,
      keys,
      clients: options.clients,
      chance: chanceOf(seed + 1),
      tokensPerSecond,
    });
    await rig.command("org", "create", "faults-kept", "--plan", "kept");
    const keptLoad = await startKeptLoad({
      ...{ rig, organization: "faults-kept", clients: kept_clients, rounds_max: 20 * options.injuries },
      chance: chanceOf(seed + 2),
    });
    const others = administrator(rig.postgres.port, faultsPlan(plan.session ?? null, plan.concurrent_requests ?? null));
    const injuries = injector(rig, others, chance, options.only);
    await injuries.run(options.injuries, options.gap_ms);
    await Promise.all([load.stop(), keptLoad.stop()]);
    const { forgotten } = injuries;
    const { planChanges, limitChanges, raises, mistakes } = others;
    const verdict = await judge(rig, load.received, { planChanges, limitChanges, raises, mistakes, forgotten });
    const kept = await keptLoad.judged(injuries);
    verdict.broken.push(...kept.broken);
    return { seed, injuries: injuries.counts, verdict, kept, took_ms: performance.now() - started };
  });
}

/** Creates a team in an organization of its own, and two keys of the team. */
async function teamOfTwo(rig: Rig): Promise<string[]> {
  await rig.command("org", "create", "team-of-two", "--plan", "faults");
  await rig.command("team", "create", "--org", "team-of-two", "--name", "two");
  await rig.command("team", "create", "--org", "team-of-two", "--name", "others");
  await rig.command("limit", "set", "team", "others", "session=0.0003", "--members", "--org", "team-of-two");
  return twoKeys(rig, "--name", "member", "--team", "two");
}

/** Creates two keys of a person in the team, besides the keys that belong to no person. */
async function keysOfAPerson(rig: Rig): Promise<string[]> {
  const { id: organization } = await rig.command<{ id: string }>("org", "show", "team-of-two");
  const id = await ask(rig.postgres.port, async (db) => {
    const made = await newMember(db, "ann", { organization, team: "two" });
    // The person has a limit, so that the ledger counts the person's usage from the beginning.
    await setLimits(db, { subject: "person", id: made, organizationId: organization }, { own: { session: 2_000_000 } });
    return made;
  });
  return twoKeys(rig, "--name", "hers", "--person", id);
}

async function twoKeys({ command }: Rig, ...options: string[]): Promise<string[]> {
  const words = ["key", "create", "--org", "team-of-two", ...options];
  return [await command<{ key: string }>(...words), await command<{ key: string }>(...words)].map(({ key }) => key);
}

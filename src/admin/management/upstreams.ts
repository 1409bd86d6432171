/** The verbs that list, drain and resume engines: docs/routing.md, Draining an engine. */
import { isIP } from "node:net";
import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { instant as instantWritten, minute } from "../../core/time/written.ts";
import { exampleOf } from "../store/example.ts";
import { instant } from "../store/shapes.ts";
import { type Column, type Facts, flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";
import { admins, moment, partOf, words } from "./shapes.ts";
import { shellWord } from "./shell-word.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Upstreams");

export const Drain = Type.Object(
  {
    upstream: Type.String({ description: "The name of the upstream in the configuration." }),
    replica: nullable(Type.String({ description: "One address of its name. Null: all of them." })),
    drained_at: instant("When it was drained."),
    until: nullable(instant("When it is resumed by itself. Null: not before somebody does.")),
    actor: Type.String({ description: "`operator:<name>` or `cli:<user>`." }),
  },
  { $id: "Drain" },
);
export type Drain = Value<typeof Drain>;
const Drains = partOf(Drain, "Drains");

const example = exampleOf(Drain, { upstream: "gpu-1", actor: "operator:ann" });

const engine = {
  upstream: words("The name of the upstream in the configuration."),
  replica: Type.Optional(
    nullable(words("One address of its name, if it has `resolve`. Left out or null: all of its engines.")),
  ),
};
const upstreamFlag = flag("<upstream>", "name of the upstream in the configuration");
const replicaFlag = flag("--replica <address>", "only this address of its name (see: sluice upstream list)");

const drainColumns: Column<Drain>[] = [
  { head: "UPSTREAM", cell: (drain) => drain.upstream },
  { head: "REPLICA", cell: (drain) => drain.replica ?? "all" },
  { head: "SINCE (UTC)", cell: (drain) => minute(drain.drainedAt) ?? "" },
  { head: "UNTIL (UTC)", cell: (drain) => minute(drain.until) ?? "resumed" },
  { head: "BY", cell: (drain) => drain.actor, optional: true },
];

function drainFacts({ upstream, replica, drainedAt, until, actor }: Drain): Facts {
  return [
    ["upstream", upstream],
    ["replica", replica ?? "all"],
    ["drained", instantWritten(drainedAt)],
    ["until", until ? instantWritten(until) : `resumed: sluice upstream resume ${shellWord(upstream)}`],
    ["by", actor],
  ];
}

export const upstreamVerbs = [
  verb({
    name: "listDrains",
    route: "GET /upstreams/drained",
    summary: "List drained engines",
    description: "The engines that get no new requests because an operator drained them.",
    roles: ["admin", "viewer"],
    faults: [],
    takes: Type.Object({}),
    answers: Drains,
    example: { takes: {}, answer: { data: [example], nextCursor: null } },
    command: {
      words: "upstream drained",
      description: "list the engines that are drained",
      columns: drainColumns,
      none: "No engine is drained.\n",
    },
    act: async ({ drains }) => ({ data: await drains.listDrains(), nextCursor: null }),
  }),
  verb({
    name: "drainUpstream",
    route: "POST /upstreams/{upstream}/drain",
    summary: "Drain an engine",
    description:
      "Within a second no node sends it new requests; running ones finish. The drain outlasts restarts, and ends when it is resumed or at `until`. Draining again sets a new `until`.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found"],
    takes: Type.Object({ ...engine, until: Type.Optional(nullable(moment("When it is resumed by itself."))) }),
    answers: Drain,
    example: { takes: { upstream: "gpu-1" }, answer: example },
    command: {
      words: "upstream drain",
      description: "stop sending new requests to an engine, on every node; running ones finish",
      takes: {
        upstream: upstreamFlag,
        replica: replicaFlag,
        until: flag("--until <instant>", "resume it by itself then, such as 2030-01-31T12:00:00Z"),
      },
      says: drainFacts,
      help: `
Examples:
  $ sluice upstream drain gpu-1
  $ sluice upstream drain gpus --replica 10.0.0.7 --until 2030-01-31T12:00:00Z`,
    },
    async act(context, { upstream, replica: named = null, until = null }) {
      await requireUpstream(context, upstream);
      const replica = named === null ? null : await addressOf(context, upstream, named);
      const drained = await context.drains.drain({ upstream, replica }, until, context.actor);
      return drained === "past" ? fail("'until' is past. Choose an instant that is to come.") : drained;
    },
  }),
  verb({
    name: "resumeUpstream",
    route: "POST /upstreams/{upstream}/resume",
    summary: "Resume a drained engine",
    description: "It gets requests again. Without a replica, every drain of the upstream ends.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object(engine),
    answers: Drains,
    example: { takes: { upstream: "gpu-1" }, answer: { data: [example], nextCursor: null } },
    command: {
      words: "upstream resume",
      description: "send requests to a drained engine again",
      takes: { upstream: upstreamFlag, replica: replicaFlag },
      columns: drainColumns,
      none: "No engine was resumed.\n",
    },
    async act(context, { upstream, replica: named = null }) {
      const drains = await drainsOf(context, upstream);
      const replica =
        named === null
          ? null
          : (sameAddress(
              drains.map((one) => one.replica),
              named,
            ) ?? named);
      const data = await context.drains.resume({ upstream, replica }, context.actor);
      if (data.length > 0) return { data, nextCursor: null };
      await requireUpstream(context, upstream);
      if (replica !== null && drains.some((one) => one.replica === null))
        fail(`'${upstream}' is drained at all of its addresses. Resume it without the replica.`, "wrong_state");
      return fail(`Nothing is drained under this name. To list what is, run: sluice upstream drained`, "wrong_state");
    },
  }),
];

async function requireUpstream({ catalog }: ManagementContext, name: string): Promise<void> {
  const { upstreams } = await catalog();
  if (upstreams.includes(name)) return;
  const known =
    upstreams.length > 0 ? `The configuration has: ${upstreams.join(", ")}.` : "The configuration has none.";
  fail(`There is no upstream '${parse.excerpt(name)}'. ${known}`, "resource_not_found");
}

const drainsOf = async ({ drains }: ManagementContext, upstream: string) =>
  (await drains.listDrains()).filter((one) => one.upstream === upstream);

/**
 * The address to drain, spelled as nodes report it. Refuses an address that no node reports: its drain would have no
 * effect, and an operator who then stops the engine would break answers. If nodes do not report all of their engines,
 * any IP address is accepted.
 */
async function addressOf(context: ManagementContext, upstream: string, replica: string): Promise<string> {
  const { resolved = [] } = await context.catalog();
  if (!resolved.includes(upstream))
    fail(
      `'${upstream}' has no 'resolve' in the configuration, so none of its engines can be drained alone. Leave the replica out to drain all of them.`,
      "resource_not_found",
    );
  const reports = await context.fleet.listProcesses();
  const seen = reports.flatMap(({ engines }) => engines).filter((one) => one.upstream === upstream);
  const known = [...seen, ...(await drainsOf(context, upstream))].flatMap((one) => one.replica ?? []);
  const same = sameAddress(known, replica);
  if (same !== undefined) return same;
  const isPartial = seen.length === 0 || reports.some(({ enginesLeftOut }) => enginesLeftOut > 0);
  if (isPartial && isIP(replica) !== 0) return canonicalAddress(replica).replace(/^\[|\]$/g, "");
  const addresses = [...new Set(known)].sort().join(", ");
  const advice = addresses ? `It is at ${addresses}.` : "Name an address, such as 10.0.0.7.";
  return fail(`'${upstream}' is not at '${parse.excerpt(replica)}'. ${advice}`, "resource_not_found");
}

/** The known address that equals `address`, as it is spelled in `known`. */
function sameAddress(known: readonly (string | null)[], address: string): string | undefined {
  const canonical = canonicalAddress(address);
  return known.find((one): one is string => one !== null && canonicalAddress(one) === canonical);
}

/** The canonical spelling of an IPv6 address; other text is returned unchanged. */
const canonicalAddress = (address: string) => URL.parse(`http://[${address}]`)?.hostname ?? address;

/**
 * Sends a hundred concurrent requests to three nodes (a thousand in `npm run test:deep`) against a limit that fits
 * exactly five: five are admitted. The limit is either that of the organization, with Redis up, down and flushed in the
 * middle; or a limit in requests a minute of a key or a team, whose organization has a limit of fifty, and refused
 * requests use nothing of the fifty.
 */
import { expect, test } from "bun:test";
import { times } from "../harness/depth.ts";
import { typed } from "../harness/money.ts";
import { rigForFile } from "./file-rig.ts";
import { model, post } from "./rig.ts";
import { redisSays } from "./stores.ts";

const runs = times(1, 5);
const requests = times(100, 1_000);
const tokens = 10;
/** A speed so slow that the first five requests still run when the last request is sent. */
const pace = `tps=${times(8, 2)}`;
/**
 * A limit in nanos that fits this many holds and not one more. Each hold is for ten output tokens at 100 nanos, and an
 * input of up to 150 nanos.
 */
const roomFor = (holds: number) => holds * (tokens * 100 + 150);

const rig = rigForFile({
  nodes: 3,
  plan: `{ session: ${roomFor(50)} }`,
  requests_max: 100_000,
  timeouts: "{ first_part_ms: 60000 }",
});

interface NewKey {
  id: string;
  organization: string;
  key: string;
}
const newKey = (org: string, ...options: string[]) =>
  rig.command<NewKey>("key", "create", "--org", org, "--name", "app", ...options);

/** How many responses have had the status 503 so far. */
let overloaded = 0;

/**
 * Sends a request, and returns the response's status and the owner of the limit that refused it. Retries while a node
 * responds with 503 because it is too busy to query its stores in time. The reservation of such a request is released,
 * except its count in Redis, which the node's next query to Redis releases.
 */
async function ask(key: string, index: number): Promise<string> {
  const content = `[simulator: ${pace}]${" hello".repeat(tokens)}`;
  const asked = { model, max_tokens: tokens, messages: [{ role: "user", content }] };
  for (;;) {
    const response = await post(rig.nodes[index % rig.nodes.length]!, "/v1/chat/completions", key, asked);
    const { error } = (await response.json()) as { error?: { limited_by?: string } };
    if (response.status !== 503) return error?.limited_by ? `${response.status} ${error.limited_by}` : "200";
    overloaded += 1;
  }
}

type Counts = Record<string, number>;

/** Sends `count` concurrent requests, and counts the responses by their result. */
async function counted(count: number, one: (index: number) => Promise<string>): Promise<Counts> {
  const counts: Counts = {};
  for (const answer of await Promise.all(Array.from({ length: count }, (_, index) => one(index))))
    counts[answer] = (counts[answer] ?? 0) + 1;
  return counts;
}

/**
 * Sends requests with limited keys and, among them, twenty with a key without a limit; counts the responses of each
 * group.
 */
async function asked(limited: readonly string[], free: string): Promise<{ own: Counts; neighbours: Counts }> {
  const others: Promise<string>[] = [];
  const own = await counted(requests, (index) => {
    if (index % (requests / 20) === 0) others.push(ask(free, index + 1));
    return ask(limited[index % limited.length]!, index);
  });
  return { own, neighbours: await counted(others.length, (index) => others[index]!) };
}

let organizations = 0;
async function organization(plan = "faults"): Promise<string> {
  const slug = `room-${++organizations}`;
  await rig.command("org", "create", slug, "--plan", plan);
  return slug;
}

const stores: [string, { before?: () => Promise<void>; middle?: () => void; after?: () => Promise<void> }][] = [
  ["up", {}],
  ["away", { before: () => rig.redis.kill(), after: () => rig.redis.start() }],
  ["flushed in the middle", { middle: () => void redisSays(rig.redis.port, "FLUSHALL").catch(() => {}) }],
];
test.each(stores)(
  "with Redis %s, five are admitted",
  async (name, { before, middle, after }) => {
    const plan = `five-${name.split(" ")[0]}`;
    await rig.command("plan", "create", plan, "--limit", `session=${typed(roomFor(5))}`);
    await before?.();
    for (let run = 0; run < runs; run++) {
      const { key } = await newKey(await organization(plan));
      const counts = await counted(requests, (index) => {
        if (index === requests / 2) middle?.();
        return ask(key, index);
      });
      expect(counts).toEqual({ 200: 5, "429 organization": requests - 5 });
    }
    await after?.();
  },
  60_000 * (runs + 1),
);

/**
 * Creates a limited key, or four keys of a limited team; and a key of the organization to which this limit does not
 * apply.
 */
async function limitedKeys(whose: "key" | "team", org: string, limit: string): Promise<[string[], string]> {
  const { key: free } = await newKey(org);
  if (whose === "key") return [[(await newKey(org, "--limit", limit)).key], free];
  await rig.command("team", "create", "--org", org, "--name", "research", "--limit", limit);
  const keys = await Promise.all(Array.from({ length: 4 }, () => newKey(org, "--team", "research")));
  return [keys.map(({ key }) => key), free];
}

/**
 * Tests a key with five requests a minute, or a team with five whose four keys have four each, in an organization with
 * fifty. Then sends 30 requests for the rest of the organization's limit: refused requests used nothing of it, so 25 of
 * the 50 are left.
 */
async function minutes(whose: "key" | "team"): Promise<Record<"own" | "neighbours" | "rest", Counts>> {
  const org = await organization("fifty");
  const [keys, free] = await limitedKeys(whose, org, "requests_per_minute=5");
  if (whose === "team")
    await rig.command("limit", "set", "team", "research", "requests_per_minute=4", "--keys", "--org", org);
  const { own, neighbours } = await asked(keys, free);
  // A key of the team that has used up its own limit of four is refused by it until the team's limit is reached.
  const { "429 key": byKeys = 0, "429 team": byTeam = 0, ...others } = own;
  const rest = await counted(30, (index) => ask(free, index));
  return { own: { ...others, [`429 ${whose}`]: byKeys + byTeam }, neighbours, rest };
}

test("against five requests a minute that Redis counts, five are admitted; where a busy node gives it up, ten at most", async () => {
  await rig.command("plan", "create", "fifty", "--limit", "requests_per_minute=50");
  const before = overloaded;
  const both = [await minutes("key"), await minutes("team")];
  for (const { own, neighbours } of both) {
    expect(own["200"]).toBeGreaterThanOrEqual(5 - (overloaded - before));
    expect(own["200"]).toBeLessThanOrEqual(10);
    expect(neighbours).toEqual({ 200: 20 });
  }
}, 240_000);

test("against five, without Redis, each node admits its share, and the others miss none of their fifty", async () => {
  await rig.redis.kill();
  const inShares = (limit: number) => rig.nodes.length * Math.ceil(limit / rig.nodes.length);
  const admitted = inShares(5);
  const left = inShares(50) - admitted - 20;
  const others = { neighbours: { 200: 20 }, rest: { 200: left, "429 organization": 30 - left } };
  for (const whose of ["key", "team"] as const)
    expect(await minutes(whose)).toEqual({ own: { 200: admitted, [`429 ${whose}`]: requests - admitted }, ...others });
}, 240_000);

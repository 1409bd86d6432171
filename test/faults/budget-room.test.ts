/**
 * A hundred requests at once on three nodes, and in `npm run test:deep` a thousand, where a limit has room for exactly
 * five: a key's limit, a team's, and the limit for the model of each kind of subject. The organization has room for
 * fifty. Five requests are admitted, and the rest of the organization's room stays. Once the limits are in nanos, and
 * once in requests a minute.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { bare } from "../../src/core/store/ids.ts";
import { countInPerson } from "../../src/stores/postgres/members.ts";
import { serverDatabase } from "../../src/stores/postgres/server.ts";
import { limitModels } from "../core/store/model-limits.ts";
import { times } from "../harness/depth.ts";
import { typed } from "../harness/money.ts";
import { model, type Rig, startRig } from "./rig.ts";

const requests = times(100, 1_000);
const tokens = 10;
/** Slow enough that all five still run when the last request is sent. */
const pace = `tps=${times(4, 2)}`;
/**
 * A limit in nanos that fits this many holds and never one more. Each hold is ten tokens of 100 nanos and an input of
 * up to 150.
 */
const roomFor = (holds: number) => holds * (tokens * 100 + 150);

let rig: Rig;
beforeAll(async () => {
  rig = await startRig({
    nodes: 3,
    plan: `{ session: ${roomFor(50)} }`,
    requests_max: 100_000,
    timeouts: "{ first_part_ms: 60000 }",
  });
}, 120_000);
afterAll(async () => {
  await rig.stop();
}, 60_000);

interface NewKey {
  id: string;
  organization: string;
  key: string;
}
const newKey = (org: string, ...options: string[]) =>
  rig.command<NewKey>("key", "create", "--org", org, "--name", "app", ...options);

interface Count {
  status: number;
  limited: string | null;
}

/** How many answers were 503 until now. */
let overloaded = 0;

/**
 * Asks again while a node answers 503 because it is too busy to query its stores in time. What such a request had
 * reserved is free again, except what Redis counts: that is free a moment later, with the node's next query.
 */
async function ask(key: string, index: number): Promise<Count> {
  for (;;) {
    const answer = await askOnce(key, index);
    if (answer.status !== 503) return answer;
    overloaded += 1;
  }
}

async function askOnce(key: string, index: number): Promise<Count> {
  const node = rig.nodes[index % rig.nodes.length]!;
  const response = await fetch(`${node.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model,
      max_tokens: tokens,
      messages: [{ role: "user", content: `[simulator: ${pace}]${" hello".repeat(tokens)}` }],
    }),
  });
  const body = (await response.json()) as { error?: { limited_by?: string } };
  return { status: response.status, limited: body.error?.limited_by ?? null };
}

const counted = (answers: readonly Count[]) => {
  const counts: Record<string, number> = {};
  for (const { status, limited } of answers) {
    const name = limited ? `${status} ${limited}` : String(status);
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
};

/**
 * Sends requests with limited keys and, among them, twenty with a key that is not limited; counts the answers of each.
 */
async function asked(
  limited: readonly string[],
  free: string,
): Promise<[Record<string, number>, Record<string, number>]> {
  const neighbours: Promise<Count>[] = [];
  const own = Array.from({ length: requests }, (_, index) => {
    if (index % (requests / 20) === 0) neighbours.push(ask(free, index + 1));
    return ask(limited[index % limited.length]!, index);
  });
  return [counted(await Promise.all(own)), counted(await Promise.all(neighbours))];
}

let organizations = 0;
async function organization(plan = "faults"): Promise<string> {
  const slug = `room-${++organizations}`;
  await rig.command("org", "create", slug, "--plan", plan);
  return slug;
}

test("against a key's room for five, five are admitted, and its neighbours all", async () => {
  const org = await organization();
  const { key } = await newKey(org, "--limit", `session=${typed(roomFor(5))}`);
  const { key: free } = await newKey(org);
  const [own, neighbours] = await asked([key], free);
  expect(own).toEqual({ 200: 5, "429 key": requests - 5 });
  expect(neighbours).toEqual({ 200: 20 });
  expect(await rig.command("usage", "check", "--full")).toEqual([]);
}, 120_000);

test("against a team's room for five, five of all its keys are admitted, and its neighbours all", async () => {
  const org = await organization();
  await rig.command("team", "create", "--org", org, "--name", "research", "--limit", `week=${typed(roomFor(5))}`);
  const keys = await Promise.all(Array.from({ length: 4 }, () => newKey(org, "--team", "research")));
  const { key: free } = await newKey(org);
  const [own, neighbours] = await asked(
    keys.map(({ key }) => key),
    free,
  );
  expect(own).toEqual({ 200: 5, "429 team": requests - 5 });
  expect(neighbours).toEqual({ 200: 20 });
}, 120_000);

const whose = ["key", "person", "team", "organization"] as const;
test.each(whose)(
  "against room for five of the %s for the model, five are admitted",
  async (one) => {
    const org = await organization();
    const team = await rig.command<{ id: string }>("team", "create", "--org", org, "--name", "research");
    const { id, key } = await newKey(org, "--team", "research");
    const db = await serverDatabase(rig.databaseUrl);
    try {
      const [row] = await db.query<{ id: string }>("select id from organization where slug = $1", [org]);
      const person = Bun.randomUUIDv7();
      await countInPerson(db, { id: bare(id, "key_"), owner: row!.id, person });
      const [member] = await db.query<{ id: string }>("select usage_member($1, $2) as id", [row!.id, person]);
      const ids = { key: bare(id, "key_"), person: member!.id, team: bare(team.id, "team_"), organization: row!.id };
      await limitModels(db, row!.id, ids[one], `${model.split("/")[0]}/*`, { week: roomFor(5) });
    } finally {
      await db.close();
    }
    const answers = await Promise.all(Array.from({ length: requests }, (_, index) => ask(key, index)));
    expect(counted(answers)).toEqual({ 200: 5, [`429 ${one}`]: requests - 5 });
    expect(await rig.command("usage", "check", "--full")).toEqual([]);
  },
  120_000,
);

/**
 * Asks 30 times for the rest of the organization's room: the refused requests used nothing of it, so twenty-five of the
 * fifty are left.
 */
async function rest(key: string): Promise<Record<string, number>> {
  return counted(await Promise.all(Array.from({ length: 30 }, (_, index) => ask(key, index))));
}

/**
 * Tries a key with five requests a minute, and a team with five a minute whose four keys have four a minute each, in
 * organizations that have fifty.
 */
async function minutes(): Promise<
  Record<"key" | "team", Record<"own" | "neighbours" | "rest", Record<string, number>>>
> {
  const single = await organization("fifty");
  const { key } = await newKey(single, "--limit", "requests_per_minute=5");
  const { key: free } = await newKey(single);
  const [own, neighbours] = await asked([key], free);
  const ofKey = { own, neighbours, rest: await rest(free) };

  const grouped = await organization("fifty");
  await rig.command(...["team", "create", "--org", grouped, "--name", "research", "--limit", "requests_per_minute=5"]);
  await rig.command("limit", "set", "team", "research", "requests_per_minute=4", "--keys", "--org", grouped);
  const keys = await Promise.all(Array.from({ length: 4 }, () => newKey(grouped, "--team", "research")));
  const { key: outside } = await newKey(grouped);
  const [ofAll, others] = await asked(
    keys.map(({ key }) => key),
    outside,
  );
  // A key that has used its own four is refused by its own limit until the team's limit is reached.
  const { "429 key": byKeys = 0, "429 team": byTeam = 0, ...others_ofAll } = ofAll;
  return {
    key: ofKey,
    team: {
      own: { ...others_ofAll, "429 team": byKeys + byTeam },
      neighbours: others,
      rest: await rest(outside),
    },
  };
}

test("against five requests a minute that Redis counts, five are admitted; where a busy node gives it up, ten at most", async () => {
  await rig.command("plan", "create", "fifty", "--limit", "requests_per_minute=50");
  const before = overloaded;
  const { key, team } = await minutes();
  for (const { own, neighbours } of [key, team]) {
    expect(own["200"]).toBeGreaterThanOrEqual(5 - (overloaded - before));
    expect(own["200"]).toBeLessThanOrEqual(10);
    expect(neighbours).toEqual({ 200: 20 });
  }
}, 240_000);

test("against five, without Redis, each node admits its share, and the others miss none of their fifty", async () => {
  await rig.redis.kill();
  const { key, team } = await minutes();
  const inShares = (limit: number) => rig.nodes.length * Math.ceil(limit / rig.nodes.length);
  const admitted = inShares(5);
  const left = inShares(50) - admitted - 20;
  const others = { neighbours: { 200: 20 }, rest: { 200: left, "429 organization": 30 - left } };
  expect(key).toEqual({ own: { 200: admitted, "429 key": requests - admitted }, ...others });
  expect(team).toEqual({ own: { 200: admitted, "429 team": requests - admitted }, ...others });
}, 240_000);

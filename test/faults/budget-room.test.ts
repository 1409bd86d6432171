/**
 * A thousand requests at once on three nodes, against a key's room for exactly five, and against a team's, in an
 * organization with room for fifty: five are admitted, and the rest of the organization is unharmed. Once in units, and
 * once in requests a minute.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { model, type Rig, startRig } from "./rig.ts";

const requests = 1000;
const tokens = 10;
/** Ten tokens of 100 units, and an input of up to 150: so many holds fit, and one more never. */
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
  organization: string;
  key: string;
}
const newKey = (org: string, ...options: string[]) =>
  rig.command<NewKey>("key", "create", "--org", org, "--name", "app", ...options);

interface Count {
  status: number;
  limited: string | null;
}

async function ask(key: string, index: number): Promise<Count> {
  const node = rig.nodes[index % rig.nodes.length]!;
  const response = await fetch(`${node.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    // Slow enough that all five still run when the last is asked.
    body: JSON.stringify({
      model,
      max_tokens: tokens,
      messages: [{ role: "user", content: `[simulator: tps=2]${" hello".repeat(tokens)}` }],
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

/** A thousand by keys that are limited, twenty by one that is not, among them. */
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
  const { key } = await newKey(org, "--limit", `session=${roomFor(5)}`);
  const { key: free } = await newKey(org);
  const [own, neighbours] = await asked([key], free);
  expect(own).toEqual({ 200: 5, "429 key": requests - 5 });
  expect(neighbours).toEqual({ 200: 20 });
  expect(await rig.command("usage", "check", "--full")).toEqual([]);
}, 120_000);

test("against a team's room for five, five of all its keys are admitted, and its neighbours all", async () => {
  const org = await organization();
  await rig.command("team", "create", "--org", org, "--name", "research", "--limit", `week=${roomFor(5)}`);
  const keys = await Promise.all(Array.from({ length: 4 }, () => newKey(org, "--team", "research")));
  const { key: free } = await newKey(org);
  const [own, neighbours] = await asked(
    keys.map(({ key }) => key),
    free,
  );
  expect(own).toEqual({ 200: 5, "429 team": requests - 5 });
  expect(neighbours).toEqual({ 200: 20 });
}, 120_000);

/** What the thousand did not get, the others still have: of the fifty, twenty-five are left. */
async function rest(key: string): Promise<Record<string, number>> {
  return counted(await Promise.all(Array.from({ length: 30 }, (_, index) => ask(key, index))));
}

test("against five requests a minute of a key, and of a team, five are admitted, and the others miss none", async () => {
  await rig.command("plan", "create", "fifty", "--limit", "requests_per_minute=50");
  const single = await organization("fifty");
  const { key } = await newKey(single, "--limit", "requests_per_minute=5");
  const { key: free } = await newKey(single);
  const [own, neighbours] = await asked([key], free);
  expect(own).toEqual({ 200: 5, "429 key": requests - 5 });
  expect(neighbours).toEqual({ 200: 20 });
  expect(await rest(free)).toEqual({ 200: 25, "429 organization": 5 });

  const grouped = await organization("fifty");
  await rig.command(
    ...["team", "create", "--org", grouped, "--name", "research", "--limit", "requests_per_minute=5"],
    ...["--key-limit", "requests_per_minute=4"],
  );
  const keys = await Promise.all(Array.from({ length: 4 }, () => newKey(grouped, "--team", "research")));
  const { key: outside } = await newKey(grouped);
  const [ofTeam, others] = await asked(
    keys.map(({ key }) => key),
    outside,
  );
  expect(ofTeam["200"]).toBe(5);
  expect(Object.keys(ofTeam).filter((name) => name !== "200" && name !== "429 team")).toEqual(
    ofTeam["429 key"] ? ["429 key"] : [],
  );
  expect(others).toEqual({ 200: 20 });
  expect(await rest(outside)).toEqual({ 200: 25, "429 organization": 5 });
}, 240_000);

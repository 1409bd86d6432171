/**
 * Measures the cost of a whole request by the kind of its key. A key of a person with a limit is compared with a key
 * that has the only limit. A key with four limits for one model is compared with a key that has as many limits for all
 * models. A node on Postgres gets a number of requests (a slice) of each kind in turn. Prints the CPU time of the node
 * and of its database backends, counted by the kernel, and the median of the ratios of neighbouring slices. Run: bun
 * bench/people.ts --pairs 12 --requests 1500
 */
import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { bare } from "../src/core/store/ids.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { limitModels } from "../test/core/store/model-limits.ts";
import { model, startService } from "../test/harness/engine.ts";
import { newMember } from "../test/harness/members.ts";
import { freshDatabase } from "../test/harness/services.ts";

const { values } = parseArgs({
  options: { pairs: { type: "string", default: "12" }, requests: { type: "string", default: "1500" } },
});
const connections = 32;
const limits = ["session=1000", "week=1000", "month=1000"];
const limit = limits.flatMap((each) => ["--limit", each]);

const database = await freshDatabase();
const service = await startService({
  engine: { directives: "", namesModel: false },
  sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
});
const db = await serverDatabase(database.url);
await service.json("org", "create", "acme", "--plan", "unlimited");
const newKey = async (name: string, ...options: string[]) =>
  (await service.json<{ key: string }>("key", "create", "--org", "acme", "--name", name, ...options)).key;
const limitPerson = (id: string) => service.json("limit", "set", "person", id, "--org", "acme", ...limits);
const person = await newMember(db, "ann", { organization: "acme" });
await service.json("team", "create", "--org", "acme", "--name", "research", ...limit);
const ofBen = await newMember(db, "ben", { organization: "acme", team: "research" });
await limitPerson(ofBen);

/**
 * Returns a key of a new organization with limits for the model: on the key only, or on the key, person, team and
 * organization of its requests.
 */
async function keyForModels(
  slug: string,
  limited: readonly ("key" | "person" | "team" | "organization")[],
): Promise<string> {
  await service.json("org", "create", slug, "--plan", "unlimited");
  const [row] = await db.query<{ id: string }>("select id from organization where slug = $1", [slug]);
  const team = await service.json<{ id: string }>("team", "create", "--org", slug, "--name", "research");
  const place = { organization: slug, team: "research" };
  const holder = limited.includes("person") ? ["--person", await newMember(db, slug, place)] : [];
  const made = await service.json<{ id: string; key: string }>(
    ...["key", "create", "--org", slug, "--name", "app", ...holder],
  );
  const ids = { key: bare(made.id, "key_"), team: bare(team.id, "team_"), organization: row!.id, person: "" };
  const [member] = await db.query<{ id: string | null }>(
    "select member_id as id from usage_subject where subject_id = $1",
    [ids.key],
  );
  ids.person = member?.id ?? "";
  const much = { session: 1e12, week: 1e12, month: 1e12 };
  for (const one of limited) await limitModels(db, row!.id, ids[one], model, much);
  return made.key;
}
await limitPerson(person);

/**
 * Creates an organization in which the organization itself, a team, a person and a key have limits. Returns the key.
 */
async function keyOfAllLimited(slug: string): Promise<string> {
  await service.json("org", "create", slug, "--plan", "unlimited");
  await service.json("limit", "set", "org", slug, ...limits);
  await service.json("team", "create", "--org", slug, "--name", "research", ...limit);
  const holder = await newMember(db, slug, { organization: slug, team: "research" });
  await service.json("limit", "set", "person", holder, "--org", slug, ...limits);
  const named = ["--org", slug, "--name", "app", "--person", holder];
  return (await service.json<{ key: string }>("key", "create", ...named, ...limit)).key;
}
const keys = {
  "a key that is limited alone": await newKey("alone", ...limit),
  "a key of a limited person": await newKey("of ann", "--person", person),
  "a limited key of a limited person": await newKey("both", "--person", person, ...limit),
  "a key without limits": await newKey("free"),
  "a limited key of a limited person in a limited team": await newKey("three", "--person", ofBen, ...limit),
  "a limited key of a limited person in a limited team of a limited organization": await keyOfAllLimited("all"),
  "a key with a limit for the model": await keyForModels("one", ["key"]),
  "key, person, team and organization with one each": await keyForModels("four", [
    "key",
    "person",
    "team",
    "organization",
  ]),
};
/** The kind with which each kind of key is compared; for kinds that are not listed, it is the first one. */
const others: Partial<Record<Kind, Kind>> = {
  "key, person, team and organization with one each":
    "a limited key of a limited person in a limited team of a limited organization",
};
type Kind = keyof typeof keys;

const threadCpu_us = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const [ran_ns] = readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ");
    return sum + Number(ran_ns) / 1000;
  }, 0);

async function backends_us(): Promise<number> {
  const rows = await db.query<{ pid: number }>(
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
  );
  return rows.reduce((sum, { pid }) => sum + threadCpu_us(pid), 0);
}

interface Cost {
  node_us: number;
  postgres_us: number;
}

/** Sends requests with one kind of key, and returns the CPU time per request. */
async function slice(kind: Kind, requests: number): Promise<Cost> {
  const before = { node: threadCpu_us(service.pid), postgres: await backends_us() };
  let left = requests;
  const client = async () => {
    while (left-- > 0) {
      const response = await fetch(`${service.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${keys[kind]}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "hello" }], max_tokens: 64 }),
      });
      if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
      await response.text();
    }
  };
  await Promise.all(Array.from({ length: connections }, client));
  return {
    node_us: (threadCpu_us(service.pid) - before.node) / requests,
    postgres_us: ((await backends_us()) - before.postgres) / requests,
  };
}

const requests = Number(values.requests);
const kinds = Object.keys(keys) as Kind[];
for (const kind of kinds) await slice(kind, requests);
const costs = new Map<Kind, Cost[]>(kinds.map((kind) => [kind, []]));
for (let pair = 0; pair < Number(values.pairs); pair++)
  for (const kind of pair % 2 ? kinds : kinds.toReversed()) costs.get(kind)!.push(await slice(kind, requests));

const median = (all: number[]) => all.toSorted((one, other) => one - other)[Math.floor(all.length / 2)]!;
const sum = ({ node_us, postgres_us }: Cost) => node_us + postgres_us;
for (const [kind, all] of costs) {
  const against = others[kind] ?? kinds[0]!;
  const alone = costs.get(against)!;
  const ratio = (of: (cost: Cost) => number) => median(all.map((cost, at) => of(cost) / of(alone[at]!))).toFixed(3);
  const [node, postgres] = [median(all.map(({ node_us }) => node_us)), median(all.map((one) => one.postgres_us))];
  console.log(
    `${kind}: node ${node.toFixed(0)} µs, Postgres ${postgres.toFixed(0)} µs; against ${against}: node ${ratio(({ node_us }) => node_us)}, Postgres ${ratio(({ postgres_us }) => postgres_us)}, together ${ratio(sum)}`,
  );
}
await db.close();
await service.stop();
await database.drop();
process.exit(0);

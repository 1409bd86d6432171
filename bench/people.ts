/**
 * What a whole request costs by the key of a limited person, against a key that is limited alone, in one run: a node on
 * Postgres gets slices of either kind in turn. CPU of the node and of its backends, from the kernel's own count, and the
 * median of the ratios of neighbouring slices.
 * Run: bun bench/people.ts --pairs 12 --requests 1500
 */
import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { model, startService } from "../test/harness/engine.ts";
import { newMember } from "../test/harness/members.ts";
import { freshDatabase } from "../test/harness/services.ts";

const { values } = parseArgs({
  options: { pairs: { type: "string", default: "12" }, requests: { type: "string", default: "1500" } },
});
const connections = 32;
const limit = ["--limit", "session=1000", "--limit", "week=1000", "--limit", "month=1000"];

const database = await freshDatabase();
const service = await startService({
  engine: { directives: "", namesModel: false },
  sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
});
const db = await serverDatabase(database.url);
await service.json("org", "create", "acme", "--plan", "unlimited");
const newKey = async (name: string, ...options: string[]) =>
  (await service.json<{ key: string }>("key", "create", "--org", "acme", "--name", name, ...options)).key;
const person = await newMember(db, "ann", { organization: "acme" });
await service.json("person", "limit", person, "--org", "acme", ...limit);
const keys = {
  "a key that is limited alone": await newKey("alone", ...limit),
  "a key of a limited person": await newKey("of ann", "--person", person),
  "a limited key of a limited person": await newKey("both", "--person", person, ...limit),
  "a key without limits": await newKey("free"),
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

/** The CPU of a request in a slice of one kind of key. */
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
const alone = costs.get(kinds[0]!)!;
for (const [kind, all] of costs) {
  const ratio = (of: (cost: Cost) => number) => median(all.map((cost, at) => of(cost) / of(alone[at]!))).toFixed(3);
  const [node, postgres] = [median(all.map(({ node_us }) => node_us)), median(all.map((one) => one.postgres_us))];
  console.log(
    `${kind}: node ${node.toFixed(0)} µs, Postgres ${postgres.toFixed(0)} µs; against a key alone: node ${ratio(({ node_us }) => node_us)}, Postgres ${ratio(({ postgres_us }) => postgres_us)}, together ${ratio(sum)}`,
  );
}
await db.close();
await service.stop();
await database.drop();
process.exit(0);

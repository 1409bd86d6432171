/**
 * Compares the cost of a batch of the ledger with limits on keys, people and teams to the cost without any. All batches
 * run on one Postgres, and the organizations get batches in turn, so that other load on the machine affects them
 * equally. Reports the CPU time of the backend that runs the batches, as the kernel counts it, and the median of its
 * ratios to other batches of the same turn.
 *
 * Run: bun bench/budgets.ts --seconds 30 --pairs 4
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { migrate } from "../db/migrate.ts";
import { noBudget } from "../src/admin/store/budget.ts";
import type { Budget } from "../src/core/store/budget.ts";
import { bare, idOf } from "../src/core/store/ids.ts";
import type { Admit, Command } from "../src/core/store/ledger.ts";
import { ledger } from "../src/stores/postgres/ledger.ts";
import { countInPerson } from "../src/stores/postgres/members.ts";
import { serverDatabase } from "../src/stores/postgres/server.ts";
import { admitOf, newHex, settleOf } from "../test/core/store/ledger-stores.ts";
import { limitModels } from "../test/core/store/model-limits.ts";
import { setRaise, setSubject } from "../test/harness/limits.ts";
import { freshDatabase } from "../test/harness/services.ts";

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "30" }, pairs: { type: "string", default: "4" } },
});
const pairs = Number(values.pairs);
const { url, drop } = await freshDatabase();
const db = await serverDatabase(url);
await migrate(db);
const book = ledger(db, { recovery: "checkpoint", lanes: 1 });
await book.run([admitOf(idOf(Bun.randomUUIDv7(), "org_"))]);
const [backend] = await db.query<{ pid: number }>(
  "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and query like '%usage_batch%' order by state_change desc limit 1",
);
const cpu_us = () => Number(readFileSync(`/proc/${backend!.pid}/schedstat`, "utf8").split(" ")[0]) / 1000;

const budget = { session: 1e14, week: 1e14, month: 1e14 };
const uuidOf = (key: string) => bare(key, "key_");

interface Case {
  name: string;
  organization: string;
  keys: string[];
  running: Admit[];
  cpu_us: number[];
}
type Limit = (id: string, team: string | null, budget: Partial<Budget>) => Promise<void>;
/** Makes the person the owner of the key. Returns the ID of the person's ledger subject. */
type Own = (key: string, person: string) => Promise<string>;
/** Temporarily raises the weekly limit of a key, or without a key that of the organization, which all keys share. */
type Lift = (key?: string) => Promise<unknown>;
/**
 * Sets a limit for the model that all requests use: for the ledger subject `parent`, or without it for the
 * organization.
 */
type LimitModel = (parent?: string) => Promise<unknown>;

type Prepare = (keys: string[], limit: Limit, own: Own, lift: Lift, limitModel: LimitModel) => Promise<unknown>;
async function caseOf(name: string, prepare: Prepare): Promise<Case> {
  const uuid = Bun.randomUUIDv7();
  await db.query("insert into organization (id, slug, name, anchor_at) values ($1, $2, '', '2026-01-31Z')", [
    uuid,
    `bench-${newHex().slice(0, 20)}`,
  ]);
  const keys = Array.from({ length: pairs }, () => `key_${newHex()}`);
  const limit: Limit = async (id, team, budget) => {
    await db.transaction((tx) => setSubject(tx, { id, organization: uuid, team, budget: { ...noBudget, ...budget } }));
  };
  const organizationId = idOf(uuid, "org_");
  const own: Own = async (key, person) => {
    await limit(key, null, {});
    await countInPerson(db, { id: key, owner: uuid, person });
    const [row] = await db.query<{ id: string }>("select usage_member($1, $2) as id", [uuid, person]);
    return row!.id;
  };
  const lift: Lift = (id = organizationId) => {
    const raise = { limits: { ...noBudget, week: 2e14 }, until: new Date(Date.now() + 86_400_000) };
    return setRaise(db, { id, organizationId }, raise);
  };
  const { model } = admitOf(organizationId);
  const limitModel: LimitModel = (parent = uuid) => limitModels(db, uuid, parent, model, budget);
  await prepare(keys, limit, own, lift, limitModel);
  return { name, organization: organizationId, keys, running: [], cpu_us: [] };
}

const cases = [
  await caseOf("no team, no limited key", async () => {}),
  await caseOf("keys without limits, beside a limited one", async (_, limit) =>
    limit(Bun.randomUUIDv7(), null, budget),
  ),
  await caseOf("one limited key of those in a batch", async ([key], limit) => limit(uuidOf(key!), null, budget)),
  await caseOf("a limited team of all keys", async (keys, limit) => {
    const team = Bun.randomUUIDv7();
    await limit(team, null, budget);
    for (const key of keys) await limit(uuidOf(key), team, {});
  }),
  await caseOf("people's keys, nobody limited", async (keys, _, own) => {
    for (const key of keys) await own(uuidOf(key), Bun.randomUUIDv7());
  }),
  await caseOf("all keys a limited person's", async (keys, limit, own) => {
    const person = Bun.randomUUIDv7();
    for (const key of keys) await limit(await own(uuidOf(key), person), null, budget);
  }),
  await caseOf("every key another limited person's", async (keys, limit, own) => {
    for (const key of keys) await limit(await own(uuidOf(key), Bun.randomUUIDv7()), null, budget);
  }),
  await caseOf("every key limited", async (keys, limit) => {
    for (const key of keys) await limit(uuidOf(key), null, budget);
  }),
  await caseOf("every key limited, and raised", async (keys, limit, _, lift) => {
    for (const key of keys) {
      await limit(uuidOf(key), null, budget);
      await lift(key);
    }
  }),
  await caseOf("no limited key, and a raised plan", (_, __, ___, lift) => lift()),
  await caseOf("every key limited, and another limited person's", async (keys, limit, own) => {
    for (const key of keys) {
      await limit(await own(uuidOf(key), Bun.randomUUIDv7()), null, budget);
      await limit(uuidOf(key), null, budget);
    }
  }),
  await caseOf("every key limited for its model", async (keys, _, __, ___, limitModel) => {
    for (const key of keys) await limitModel(uuidOf(key));
  }),
  await caseOf("the organization limited for the model", async (_, __, ___, ____, limitModel) => limitModel()),
  await caseOf("every key, its person and its team limited", async (keys, limit, own) => {
    for (const key of keys) {
      const { person, team } = await staffed(uuidOf(key), limit, own);
      for (const [id, inTeam] of [
        [uuidOf(key), team],
        [person, null],
        [team, null],
      ] as const)
        await limit(id, inTeam, budget);
    }
  }),
  await caseOf("the same three for the model", async (keys, limit, own, _, limitModel) => {
    for (const key of keys) {
      const { person, team } = await staffed(uuidOf(key), limit, own);
      for (const id of [uuidOf(key), person, team]) await limitModel(id);
    }
  }),
  await caseOf("the same three and the organization for the model", async (keys, limit, own, _, limitModel) => {
    for (const key of keys) {
      const { person, team } = await staffed(uuidOf(key), limit, own);
      for (const id of [uuidOf(key), person, team, undefined]) await limitModel(id);
    }
  }),
];

/** Assigns the key to a new person and a new team. */
async function staffed(key: string, limit: Limit, own: Own): Promise<{ person: string; team: string }> {
  const team = Bun.randomUUIDv7();
  const person = await own(key, Bun.randomUUIDv7());
  await limit(key, team, {});
  return { person, team };
}

async function batch(one: Case): Promise<void> {
  const admits = one.keys.map((keyId) => ({ ...admitOf(one.organization), keyId }));
  const commands: Command[] = [...one.running.map((admit) => settleOf(admit, 500)), ...admits];
  const began_us = cpu_us();
  await book.run(commands);
  one.cpu_us.push(cpu_us() - began_us);
  one.running = admits;
}

const until_ms = performance.now() + Number(values.seconds) * 1000;
while (performance.now() < until_ms) for (const one of cases) await batch(one);

const median = (numbers: number[]) => numbers.sort((a, b) => a - b)[Math.floor(numbers.length / 2)]!;
const ratioTo = (name: string, one: number[]) => {
  const other = cases.find((each) => each.name === name)!.cpu_us.slice(20);
  return median(one.map((cpu_us, at) => cpu_us / other[at]!)).toFixed(3);
};
console.log(
  `| ${pairs} admissions and ${pairs} settlements a batch | p50 µs | to no limits | to limited keys | to three limits | batches |\n|---|---|---|---|---|---|`,
);
for (const { name, cpu_us } of cases) {
  const measured = cpu_us.slice(20);
  const [free, keys, three] = [
    "no team, no limited key",
    "every key limited",
    "every key, its person and its team limited",
  ];
  const ratios = [free!, keys!, three!].map((name) => ratioTo(name, measured)).join(" | ");
  console.log(`| ${name} | ${median([...measured]).toFixed(0)} | ${ratios} | ${measured.length} |`);
}
await book.close();
await db.close();
await drop();
process.exit(0);

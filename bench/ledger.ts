// Measures the CPU time of Postgres for a batch of the ledger: `bun bench/ledger.ts [another checkout] [rounds]`. It is
// that of the backend that runs the batches, counted by the kernel in nanoseconds. With another checkout (for example,
// the one before a change) the two take turns, batch by batch, each with its own migrations and its own code. Compare
// the columns of one run, not runs on different machines. For batches over many organizations, it also prints the cost
// of writing the same rows without deciding anything (ledger-floor.ts).

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import Table from "cli-table3";
import type { Command } from "../src/core/store/ledger.ts";
import type { Book } from "../src/stores/postgres/ledger.ts";
import type { admitOf, settleOf } from "../test/core/store/ledger-stores.ts";
import { freshDatabase } from "../test/harness/services.ts";
import { type Floor, floorOf } from "./ledger-floor.ts";
import { percentile } from "./speed/percentile.ts";

const here = join(import.meta.dir, "..");
const trees = [here, ...process.argv.slice(2, 3).map((path) => resolve(path))];
const rounds = Number(process.argv[3] ?? 300);
const organizations_count = 10_000;
const only = process.argv[4] ? new RegExp(process.argv[4]) : null;

/**
 * The functions of a checkout that create commands. They are loaded from that checkout, because its commands may have
 * other fields.
 */
interface Makers {
  admitOf: typeof admitOf;
  settleOf: typeof settleOf;
}
interface Subject extends Makers {
  book: Book;
  organizations: string[];
  floor: Floor;
  cpu_us(): number;
  close(): Promise<void>;
}

async function subjectIn(tree: string): Promise<Subject> {
  const { migrate } = await import(join(tree, "db/migrate.ts"));
  const { ledger } = await import(join(tree, "src/stores/postgres/ledger.ts"));
  const { serverDatabase } = await import(join(tree, "src/stores/postgres/server.ts"));
  const { admitOf, settleOf } = (await import(join(tree, "test/core/store/ledger-stores.ts"))) as Makers;
  const database = await freshDatabase();
  const db = await serverDatabase(database.url);
  await migrate(db);
  const made = await db.query(
    `insert into organization (id, slug, name, anchor_at)
     select gen_random_uuid(), 'bench-' || n, 'Bench', '2026-01-31Z' from generate_series(1, ${organizations_count}) n
     returning id::text`,
  );
  // Creates the current windows of each organization, as if it had sent requests before.
  await db.exec(`
    insert into usage_now (subject_id, generation, updates, running, starts_at, ends_at, used, held)
    select o.id, 1, 0, 0, w.starts_at, w.ends_at, '{0,0,0,0}', '{0,0,0,0}'
    from organization o cross join lateral usage_windows_at(o.id, now()) w`);
  await db.exec("vacuum analyze");
  const organizations: string[] = made.map(({ id }: { id: string }) => `org_${id.replaceAll("-", "")}`);
  const book: Book = ledger(db, { recovery: "checkpoint", lanes: 1 });
  const [ended, running] = [admitOf(organizations[0]!), admitOf(organizations[0]!)];
  await book.run([ended, running]);
  await book.run([settleOf(ended, 700)]);
  const [backend] = await db.query(
    "select pid from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend' order by state_change desc limit 1",
  );
  const floor = await floorOf(db);
  return {
    book,
    admitOf,
    settleOf,
    organizations,
    floor,
    cpu_us: () => Number(readFileSync(`/proc/${backend.pid}/schedstat`, "utf8").split(" ")[0]) / 1000,
    close: async () => {
      await floor.close();
      await book.close();
      await db.close();
      await database.drop();
    },
  };
}

/** Creates the batches of a round. They run one after another, and leave no request running. */
type Round = (subject: Subject) => Command[][];
const limits = { session: 1e14, week: 1e14, month: 1e14, concurrentRequests: 100_000 };
/**
 * The organization of the admission with the number `at`: each in turn, or a random one if there are more organizations
 * than admissions.
 */
const ownerOf = (at: number, count: number, owners: number) =>
  owners > count ? Math.floor(Math.random() * owners) : at % owners;
const admissions = (count: number, owners: number, { admitOf, organizations }: Subject) =>
  Array.from({ length: count }, (_, at) => admitOf(organizations[ownerOf(at, count, owners)]!, { limits }));

const pairs = (count: number, owners: number): Round => {
  return (subject) => {
    const admits = admissions(count, owners, subject);
    return [admits, admits.map((one) => subject.settleOf(one, 700))];
  };
};
/** Creates batches each of which settles the admissions of the previous batch, as under a steady load. */
const mixed = (count: number, owners: number): Round => {
  return (subject) => {
    const groups = Array.from({ length: 4 }, () => admissions(count / 2, owners, subject));
    return [...groups, []].map((admits, at) => [
      ...(groups[at - 1] ?? []).map((one) => subject.settleOf(one, 700)),
      ...admits,
    ]);
  };
};
const streams = (count: number, verb: "grow" | "checkpoint"): Round => {
  const usage = { inputTokens: 9, cachedInputTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 } as const;
  return (subject) => {
    const admits = admissions(count, 1, subject);
    const next = (step: number) =>
      admits.map(
        (one): Command =>
          verb === "grow"
            ? { ...one, verb, number: step, nanosTotal: 1000 + step, nanosTotal_min: 1000 + step }
            : { ...one, verb, number: step, usage: { ...usage, outputTokens: step, source: "counted" } },
      );
    const steps = Array.from({ length: 6 }, (_, step) => next(step + 1));
    return [admits, ...steps, admits.map((one) => subject.settleOf(one, 700))];
  };
};
const manyOrganizations = `32, both verbs, ${organizations_count} organizations`;
const loads: Record<string, Round> = {
  "1 command": pairs(1, 1),
  "8 commands": pairs(8, 1),
  "32 commands": pairs(32, 1),
  "128 commands": pairs(128, 1),
  "8, both verbs": mixed(8, 1),
  "32, both verbs": mixed(32, 1),
  "32, ten organizations": pairs(32, 10),
  "32, both verbs, ten organizations": mixed(32, 10),
  "32, both verbs, a hundred organizations": mixed(32, 100),
  [manyOrganizations]: mixed(32, organizations_count),
  "16 grows (6 of 8 batches)": streams(16, "grow"),
  "16 checkpoints (6 of 8 batches)": streams(16, "checkpoint"),
};

/**
 * The cost of writing the rows of a batch without deciding anything. The batch admits and settles the same number of
 * requests, each of another organization.
 */
async function floorCost({ floor, organizations }: Subject): Promise<number> {
  const samples: number[] = [];
  for (let turn = -20; turn < rounds; turn++) {
    const begin = Math.floor(Math.random() * (organizations.length - 32));
    const before = floor.cpu_us();
    await floor.write(organizations.slice(begin, begin + 32));
    if (turn >= 0) samples.push(floor.cpu_us() - before);
  }
  return percentile(samples, 0.5);
}

async function main(): Promise<void> {
  const subjects = await Promise.all(trees.map(subjectIn));
  const table = new Table({
    head: [
      "a batch of",
      ...trees.map((_, at) => (at === 0 ? "here, µs" : "there, µs")),
      ...trees.slice(1).map(() => "here / there"),
    ],
    style: { head: [], border: [] },
  });
  for (const [name, round] of Object.entries(loads)) {
    if (only && !only.test(name)) continue;
    const samples = subjects.map((): number[] => []);
    for (let turn = -20; turn < rounds; turn++) {
      for (const [at, subject] of subjects.entries()) {
        const { book, cpu_us } = subject;
        const batches = round(subject);
        const before = cpu_us();
        for (const batch of batches) await book.run(batch);
        if (turn >= 0) samples[at]!.push((cpu_us() - before) / batches.length);
      }
    }
    const medians = samples.map((some) => some.sort((one, other) => one - other)[Math.floor(some.length / 2)]!);
    const [ours, ...theirs] = medians;
    table.push([name, ...medians.map((one) => one.toFixed(0)), ...theirs.map((one) => (ours! / one).toFixed(2))]);
  }
  console.log(table.toString());
  if (!only || only.test(manyOrganizations)) {
    const floor_us = await floorCost(subjects[0]!);
    console.log(`the rows of a batch of ${manyOrganizations}, and nothing decided: ${floor_us.toFixed(0)} µs`);
  }
  for (const subject of subjects) await subject.close();
}

await main();

// The day of a company that limits teams, people and keys: a refusal says whose limit it was, and every number of every
// report is the sum of the receipts.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Money } from "../../../src/core/inference/money.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";
import { model, plainModel, type Service, startService } from "../../harness/engine.ts";
import { newMember } from "../../harness/members.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(120_000);

interface Key {
  id: string;
  key: string;
}
interface Receipt {
  id: string;
  key_id: string;
  person_id: string | null;
  model: string;
  outcome: string;
  cost: { charged: Money; uncharged: Money };
  usage: { input_tokens: number; output_tokens: number } | null;
}
interface Sums {
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cost: { total: Money; uncharged: Money };
}
type Row = Sums & { key_id?: string; person_id?: string | null; team_id?: string | null; model?: string };

let service: Service;
let db: Database;
let drop: () => Promise<void>;
const team: Record<string, string> = {};
const person: Record<string, string> = {};
const keys: Record<string, Key & { person: string | null; team: string | null }> = {};

beforeAll(async () => {
  const database = await migratedDatabase();
  drop = database.drop;
  service = await startService({
    plans: { wide: "{ month: 1000000000, concurrent_requests: 50 }" },
    engine: { directives: "", namesModel: false },
    sluice: { store: "postgres", env: { DATABASE_URL: database.url } },
  });
  db = await serverDatabase(database.url);
  await service.json("org", "create", "acme", "--plan", "wide");
  await service.json("limit", "set", "org", "acme", "--members", "week=0.0004");
  for (const [name, limit] of [
    ["research", "month=0.0005"],
    ["product", "month=0.1"],
  ] as const)
    team[name] = (
      await service.json<{ id: string }>("team", "create", "--org", "acme", "--name", name, "--limit", limit)
    ).id;
  for (const [name, inTeam] of [
    ["ann", "research"],
    ["bob", "research"],
    ["cleo", "product"],
  ] as const)
    person[name] = await newMember(db, name, { organization: "acme", team: inTeam });
  await service.json("limit", "set", "person", person.cleo!, "--org", "acme", "week=0.1");
  await give("ann-laptop", { person: "ann", team: "research" });
  await give("ann-server", { person: "ann", team: "research" });
  await give("bob", { person: "bob", team: "research" });
  await give("cleo", { person: "cleo", team: "product" });
  await give("cleo-narrow", { person: "cleo", team: "product" }, "--limit", "session=0.00015");
  await give("research-job", { team: "research" });
  await give("nobody", {});
}, 120_000);
afterAll(async () => {
  await db?.close();
  await service?.stop();
  await drop?.();
});

async function give(name: string, owner: { person?: string; team?: string }, ...options: string[]): Promise<void> {
  const whose = owner.person ? ["--person", person[owner.person]!] : owner.team ? ["--team", owner.team] : [];
  const made = await service.json<Key>("key", "create", "--org", "acme", "--name", name, ...whose, ...options);
  const ids = { person: person[owner.person ?? ""] ?? null, team: team[owner.team ?? ""] ?? null };
  keys[name] = { ...made, ...ids };
}

/** A request of this kind holds some 110,000 nanos while it runs, and costs a few thousand. */
const content = "[simulator: tps=40] one two three four";
const asked: { id: string; name: string; limitedBy: string | null }[] = [];

/**
 * Sends `each` concurrent requests for the model `of` with each of these keys. Returns the owners of the limits that
 * refused requests.
 */
async function atOnce(names: readonly string[], each: number, of: string): Promise<Set<string>> {
  const all = names.flatMap((name) => Array.from({ length: each }, () => works(name, of)));
  const refusals = (await Promise.all(all)).filter((one) => one !== null);
  await until(async () => (await running()) === 0, 30_000, "everything to be settled");
  return new Set(refusals);
}

async function works(name: string, of: string): Promise<string | null> {
  const body = { model: of, messages: [{ role: "user", content }], max_tokens: 256 };
  const response = await service.post("/v1/chat/completions", body, { key: keys[name]!.key });
  const answer = (await response.json()) as { error?: { limited_by: string } };
  expect([200, 429]).toContain(response.status);
  const limitedBy = response.status === 200 ? null : answer.error!.limited_by;
  asked.push({ id: response.headers.get("x-service-request-id")!, name, limitedBy });
  return limitedBy;
}

async function running(): Promise<number> {
  const [held] = await db.query<{ count: number }>("select count(*)::integer as count from usage_hold");
  return held!.count;
}

const report = (by: string) =>
  service.json<{ total: Sums; rows: Row[] }>("usage", "report", "--org", "acme", "--by", by);

test("the narrowest limit refuses and is named, and others go on", async () => {
  expect(await atOnce(["ann-laptop", "ann-server"], 3, model)).toEqual(new Set(["person"]));
  expect(await atOnce(["bob", "research-job"], 3, model)).toEqual(new Set(["team"]));
  expect(await atOnce(["cleo-narrow"], 3, plainModel)).toEqual(new Set(["key"]));
  expect(await atOnce(["cleo", "nobody"], 5, plainModel)).toEqual(new Set());
});

test("every number of every report is the sum of the receipts", async () => {
  const receipts = await Promise.all(
    asked.map(async ({ id }) => {
      const found = await service.fetch(`/v1/service/requests/${id}`, { key: keyOf(id).key });
      return (await found.json()) as Receipt;
    }),
  );
  for (const receipt of receipts) {
    const { name, limitedBy } = asked.find(({ id }) => id === receipt.id)!;
    const { id, person: whose } = keys[name]!;
    expect(receipt).toMatchObject({ key_id: id, person_id: whose, outcome: limitedBy ? "refused" : "completed" });
    if (limitedBy) expect(receipt.cost.charged).toEqual(dollars(0));
  }
  const settled = receipts.filter(({ outcome }) => outcome !== "refused");
  expect(settled.length).toBeGreaterThan(10);
  const groups = {
    key: (one: Receipt) => one.key_id,
    person: (one: Receipt) => one.person_id,
    team: (one: Receipt) => keyById(one.key_id).team,
    model: (one: Receipt) => one.model,
  };
  for (const [by, groupOf] of Object.entries(groups)) {
    const { total, rows } = await report(by);
    expect(total).toMatchObject(sumOf(settled));
    const found = new Map(rows.map((row) => [row[`${by === "model" ? by : `${by}_id`}` as keyof Row] ?? null, row]));
    const expected = Map.groupBy(settled, groupOf);
    expect(new Set(found.keys())).toEqual(new Set(expected.keys()) as Set<never>);
    for (const [group, theirs] of expected) expect(found.get(group as never)).toMatchObject(sumOf(theirs));
  }
});

test("a report by person says how much of her limits each has used, as the person does", async () => {
  const { rows } = await report("person");
  const shown = await service.json<{ standing: object }>("limit", "show", "person", person.ann!, "--org", "acme");
  expect(shown.standing).toMatchObject({ week: { limit: dollars(400_000) } });
  const { standing } = rows.find((row) => row.person_id === person.ann) as { standing?: object };
  expect(standing).toEqual(shown.standing);
  const byModel = (await report("person,model")).rows;
  expect(byModel.every((row) => !("standing" in row))).toBe(true);
});

const keyById = (id: string) => Object.values(keys).find((one) => one.id === id)!;
const keyOf = (request: string) => keys[asked.find(({ id }) => id === request)!.name]!;

function sumOf(receipts: readonly Receipt[]): Sums {
  const sum = { requests: 0, input_tokens: 0, output_tokens: 0 };
  let [charged, uncharged] = [0, 0];
  for (const { usage, cost } of receipts) {
    sum.requests += 1;
    sum.input_tokens += usage?.input_tokens ?? 0;
    sum.output_tokens += usage?.output_tokens ?? 0;
    charged += nanosOf(cost.charged);
    uncharged += nanosOf(cost.uncharged);
  }
  return { ...sum, cost: { total: dollars(charged), uncharged: dollars(uncharged) } };
}

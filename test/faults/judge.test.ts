/** Tests of judge.ts: it objects to a ledger that is wrong in one record, and does not object to a correct one. */
import { beforeAll, expect, test } from "bun:test";
import { stepTokens } from "../../src/core/admission/allowance.ts";
import { until } from "../harness/until.ts";
import { chanceOf } from "./chance.ts";
import { rigForFile } from "./file-rig.ts";
import { compared, judge } from "./judge.ts";
import { type Received, startLoad } from "./load.ts";
import { ask } from "./stores.ts";

const rig = rigForFile({ nodes: 1, plan: "{}", requests_max: 10_000, engines: 2 });
let received: readonly Received[];
const nothing = { planChanges: [{ at_ms: Number.NEGATIVE_INFINITY, session: null }], forgotten: [] };

beforeAll(async () => {
  const load = startLoad({ nodes: rig.nodes, keys: [rig.key], clients: 4, chance: chanceOf(7), tokensPerSecond: 500 });
  const whole = () => load.received.filter(({ complete }) => complete);
  await until(() => whole().length >= 10, 20_000, "ten answers");
  await until(() => whole().some(({ wanted }) => wanted > stepTokens), 20_000, "one beyond what is held at first");
  const ranked = () => whole().some(({ searches }) => searches > 0);
  await until(ranked, 20_000, "a ranking");
  await load.stop();
  received = load.received;
}, 120_000);

/** The SQL condition that selects one record of a complete response. */
const oneOf = (condition: string) => `where request_id = (
  select request_id from usage_record where outcome = 'completed' and ${condition} order by request_id limit 1)`;
const record = oneOf("output_tokens > 1");
/** Two SQL statements: one adds these amounts to columns of a record, the other subtracts them. */
const added = (one: string, amounts: Record<string, number>): [wrong: string, right: string] => {
  const by = (sign: 1 | -1) =>
    Object.entries(amounts).map(([column, amount]) => `${column} = ${column} + ${sign * amount}`);
  return [`update usage_record set ${by(1)} ${one}`, `update usage_record set ${by(-1)} ${one}`];
};

test("a book that is right is objected to in nothing, of long answers too", async () => {
  const { broken, grown } = await judge(rig, received, nothing);
  expect(broken).toEqual([]);
  expect(grown).toBeGreaterThan(0);
});

const wrongs: [what: string, statements: [wrong: string, right: string], said: RegExp][] = [
  [
    "a record is lost",
    [
      `create table lost as select * from usage_record ${record};
        delete from usage_record where request_id in (select request_id from lost)`,
      "insert into usage_record select * from lost; drop table lost",
    ],
    /was answered and has no record/,
  ],
  ["a charge is not what tokens cost", added(record, { uncharged: 1 }), /are not what its tokens and searches cost/],
  [
    "a token too many is counted",
    added(record, { output_tokens: 1, charged: 100 }),
    /is charged \d+ tokens, and its engines made/,
  ],
  [
    "an answer that nobody streamed is charged though it failed",
    [
      `create table was as select request_id from usage_record where not stream and outcome = 'completed' limit 1;
        update usage_record set outcome = 'failed' where request_id in (select request_id from was)`,
      "update usage_record set outcome = 'completed' where request_id in (select request_id from was); drop table was",
    ],
    /was not streamed and not delivered/,
  ],
  [
    "a window has forgotten nanos",
    ["update usage_now set used[2] = used[2] - 1", "update usage_now set used[2] = used[2] + 1"],
    /the week window of .* says/,
  ],
];

for (const [what, [wrong, right], said] of wrongs)
  test(`${what}: the judge says so`, async () => {
    await ask(rig.postgres.port, (db) => db.exec(wrong));
    const { broken } = await compared(rig, received, nothing);
    await ask(rig.postgres.port, (db) => db.exec(right));
    expect(broken.join("\n")).toMatch(said);
  });

test("an answer that is shorter than was asked, or of which a token was lost on its way: the judge says so", async () => {
  const whole = received.find(({ complete }) => complete)!;
  const asked = await compared(rig, [{ ...whole, wanted: whole.wanted + 1 }], nothing);
  expect(asked.broken.join("\n")).toMatch(/its engines made (\d+) of \d+ tokens, and its record says \1/);
  const lost = await compared(rig, [{ ...whole, tokens: whole.tokens - 1 }], nothing);
  expect(lost.broken.join("\n")).toMatch(/was complete, its engines made .* and it received/);
});

test("a charge past the limit that counted meanwhile: the judge says so, and not of a limit that was lowered later", async () => {
  const at = (at_ms: number, session: number | null) => ({ at_ms, session });
  const first = at(Number.NEGATIVE_INFINITY, 1);
  expect((await compared(rig, received, { ...nothing, planChanges: [first] })).broken.join("\n")).toMatch(/of 1 nanos/);
  const raised = [first, at(0, null), at(Date.now() + 3_600_000, 1)];
  expect((await compared(rig, received, { ...nothing, planChanges: raised })).broken).toEqual([]);
});

test("a background response that a failover forgot costs nothing; a charge of it would be objected to", async () => {
  const forgotten = [{ from_ms: 0, to_ms: 1 }];
  const isFailed = "update usage_record r set outcome = 'failed'";
  const isWas = "from was where r.request_id = was.request_id";
  await ask(rig.postgres.port, (db) =>
    db.exec(`create table was as select * from usage_record where not stream and outcome = 'completed' limit 1;
      ${isFailed}, charged = 0, uncharged = was.charged + was.uncharged ${isWas}`),
  );
  const free = await compared(rig, received, { ...nothing, forgotten });
  const unexcused = await compared(rig, received, nothing);
  await ask(rig.postgres.port, (db) =>
    db.exec(`${isFailed}, charged = was.charged, uncharged = was.uncharged ${isWas}`),
  );
  const charged = await compared(rig, received, { ...nothing, forgotten });
  await ask(rig.postgres.port, (db) =>
    db.exec(`update usage_record r set outcome = was.outcome ${isWas}; drop table was`),
  );
  const objected = /was not streamed and not delivered/;
  expect(free.broken.join("\n")).not.toMatch(objected);
  expect(unexcused.broken.join("\n")).toMatch(objected);
  expect(charged.broken.join("\n")).toMatch(objected);
});

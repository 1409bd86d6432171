/**
 * Every kind of notice is delivered once in each format (signed JSON, Slack, Teams), however many nodes look for
 * notices to send.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { nodesOf } from "../../../src/admin/management/fleet-view.ts";
import { sealing } from "../../../src/config/sealed.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import { conditionsOf, strayAnswer } from "../../../src/features/notices/conditions.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { fleetReports } from "../../../src/stores/postgres/fleet-reports.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { noticeQueue } from "../../../src/stores/postgres/notices.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { reportOf } from "../../admin/management/fleet-reports.ts";
import { admitOf, type Store, settleOf, stores } from "../../core/store/ledger-stores.ts";
import { type Channel, slackChannel, teamsChannel } from "../../harness/channels.ts";
import { setHook } from "../../harness/destinations.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { standardStore } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { startReceiver, startSender } from "./sender.ts";

setDefaultTimeout(60_000);

const key = sealing([new Uint8Array(32).fill(7)], (bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
const ending = endedAfterEach();

let store: Store;
beforeAll(async () => {
  store = await stores[standardStore]();
  await plans(store.db).publish([{ ...noLimits, name: "test", week: 1_000 }], 0);
});
afterAll(() => store.close());

function channels(): { slack: Channel; teams: Channel } {
  const made = { slack: slackChannel(), teams: teamsChannel() };
  ending.push(made.slack.stop, made.teams.stop);
  return made;
}

const setting = { shares: [80, 100], keyExpiryDays: 14 };
const acts = () => administration(store.db, { sealing: key });

/**
 * Sets up one destination of each format (JSON, Slack, Teams), and returns their receivers, which record the messages.
 */
async function everywhere(owner: string | null) {
  const json = startReceiver(ending);
  const { slack, teams } = channels();
  for (const [form, { url }] of Object.entries({ json, slack, teams }))
    await setHook(acts(), owner, { ...setting, form: form as "json", name: form, url });
  return { json, slack, teams };
}

const node = () =>
  startSender(ending, {
    queue: noticeQueue(store.db, key),
    conditions: (reports, now) => conditionsOf(nodesOf(reports), now),
  });

const sorted = (list: readonly string[]) => [...list].sort();

test("what an organization is told comes once to JSON, Slack and Teams", async () => {
  const organization = await store.newOrganization();
  const { json, slack, teams } = await everywhere(organization);
  const book = ledger(store.db, { recovery: "checkpoint" });
  const admit = admitOf(organization, { inputNanos: 1_000, outputTokens: 0, outputTokens_min: 0 });
  await book.run([admit]);
  await book.run([settleOf(admit, 1_000)]);
  await book.close();
  await store.db.query(
    `insert into api_key (id, organization_id, name, scopes, created_at, expires_at)
     values ($1, $2, 'a <b> *key*', '{models:read}', now(), now() + interval '3 days')`,
    [Bun.randomUUIDv7(), organization.slice(4)],
  );
  await acts().setOrganizationStatus(organization, "suspended", "cli:test");
  const nodes = [node(), node()];
  const kinds = ["key.expiring", "organization.suspended", "usage.share_reached", "usage.share_reached"];
  await until(() => [json, slack, teams].every(({ got }) => got.length >= kinds.length), 20_000, "the notices");
  await Promise.all(nodes.map((one) => one.stop()));
  expect(sorted(json.got.map(({ notice }) => notice.type))).toEqual(kinds);
  const { slug } = (await acts().findOrganization(organization))!;
  const titles = [
    `80 % of the limit of the week of ${slug} are used`,
    `The key a <b> *key* of ${slug} expires soon`,
    `The limit of the week of ${slug} is reached`,
    `The organization ${slug} was suspended`,
  ];
  for (const { got, refused } of [slack, teams])
    expect([sorted(got.map(({ title }) => title)), refused]).toEqual([titles, []]);
  expect(nodes.flatMap(({ given }) => given)).toEqual([]);
});

const gpu = (state: string) => [
  { upstream: "gpu-1", replica: null, states: { [state]: 2 }, requests: 0, tokens: 0, waiting: 0 },
];

test("what lasts in the fleet is told to operators once, and once more when it is over", async () => {
  const { json, slack, teams } = await everywhere(null);
  const other = await store.newOrganization();
  const elsewhere = startReceiver(ending);
  await setHook(acts(), other, { ...setting, url: elsewhere.url });
  const fleet = fleetReports(store.db);
  const [first, second] = [reportOf({ name: "node-1:80" }), reportOf({ name: "node-2:80" })];
  const nodes = [node(), node()];
  const say = async (at_s: number, engine: string, problems: string[], certificateExpiresAt: string | null = null) => {
    await store.setClock(new Date(began_ms + at_s * 1_000));
    await fleet.report({ ...first, engines: gpu(engine), certificateExpiresAt });
    await fleet.report({ ...second, engines: gpu(engine), problems, certificateExpiresAt });
    // If several nodes look for new notices at the same time, only one of them does the work. So this call is repeated
    // until it has done the work.
    for (let isDone = false; !isDone; )
      await noticeQueue(store.db, key).look((reports, now) => {
        isDone = true;
        return conditionsOf(nodesOf(reports), now);
      });
  };
  const began_ms = Date.now();
  const came = (count: number) => until(() => [json, slack, teams].every(({ got }) => got.length >= count), 20_000);
  await say(0, "closed", []);
  // A short failure causes no notice.
  await say(1, "open", ["database: away"]);
  await say(5, "closed", []);
  await say(6, "open", ["database: away"]);
  expect(await store.db.query("select kind from notice where kind like 'engine%' or kind like 'node%'")).toEqual([]);
  for (const at_s of [12, 17, 20]) await say(at_s, "half-open", ["database: away"]);
  await came(2);
  for (const at_s of [25, 29, 33, 37, 41, 46]) await say(at_s, "closed", []);
  await came(4);
  nodes[0]!.tell(strayAnswer("gpu-1", new Date(began_ms)));
  nodes[1]!.tell(strayAnswer("gpu-1", new Date(began_ms)));
  await came(5);
  const expiring = new Date(began_ms + 10 * 86_400_000).toISOString();
  for (const at_s of [50, 58, 66]) await say(at_s, "closed", [], expiring);
  await came(6);
  await store.setClock(null);
  await Promise.all(nodes.map((one) => one.stop()));
  expect(sorted(json.got.map(({ notice }) => notice.type))).toEqual([
    ...["certificate.expiring", "engine.down", "engine.stray_answer", "engine.up", "node.failing", "node.settled"],
  ]);
  const titles = [
    "The certificate of node-1:80, node-2:80 expires soon",
    "The engine gpu-1 is back",
    "The engine gpu-1 is down",
    "The engine gpu-1 sent an answer that nobody asked for",
    "The node node-2:80 has a problem",
    "The node node-2:80 has no problem any more, or is gone",
  ];
  for (const { got, refused } of [slack, teams])
    expect([sorted(got.map(({ title }) => title)), refused]).toEqual([titles, []]);
  expect(elsewhere.got).toEqual([]);
  await store.db.exec("delete from notice_destination");
});

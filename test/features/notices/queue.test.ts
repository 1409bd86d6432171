/** Notices to organizations by webhook, over real sockets and on both databases. */
import { afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { noBudget } from "../../../src/admin/store/budget.ts";
import { sealing } from "../../../src/config/sealed.ts";
import type { Money } from "../../../src/core/inference/money.ts";
import { uuidOf } from "../../../src/core/store/ids.ts";
import { noLimits } from "../../../src/core/store/plan.ts";
import type { Sealing } from "../../../src/core/store/sealing.ts";
import { nextAttempt_ms } from "../../../src/features/notices/sending.ts";
import { isPublicAddress, sendWebhook, signatureOf } from "../../../src/features/notices/webhook.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import type { Database, Transaction } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { noticeQueue } from "../../../src/stores/postgres/notices.ts";
import { plans } from "../../../src/stores/postgres/plans.ts";
import { admitOf, newHex, type Store, settleOf, stores } from "../../core/store/ledger-stores.ts";
import { limitModels } from "../../core/store/model-limits.ts";
import { newSecret, unrestricted } from "../../core/store/new-key.ts";
import { databaseKinds } from "../../harness/depth.ts";
import { findHook, removeHook, setHook } from "../../harness/destinations.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { setRaise } from "../../harness/limits.ts";
import { dollars, nanosOf } from "../../harness/money.ts";
import { until } from "../../harness/until.ts";
import { startReceiver, startSender } from "./sender.ts";

setDefaultTimeout(60_000);

const ending = endedAfterEach();

const secret = "whsec_test";
const nothing = () => [];
const hook = (url: string) => ({ url, shares: [80, 100], keyExpiryDays: 14 });
const request = (url: string) => ({ url, body: "{}", headers: {} });

describe.each(databaseKinds(import.meta.path))("%s", (kind) => {
  let store: Store;
  let acts: ReturnType<typeof administration>;
  let organization: string;
  beforeAll(async () => {
    store = await stores[kind]();
    await plans(store.db).publish([{ ...noLimits, name: "test", week: 1_000 }], 0);
    acts = administration(store.db);
    return () => store.close();
  });
  beforeEach(async () => {
    organization = await store.newOrganization();
  });
  const none = () => store.db.exec("delete from notice; delete from notice_destination");
  afterEach(none);

  const node = () => startSender(ending, { queue: noticeQueue(store.db), consoleUrl: () => null });
  /** Creates a team with 100 nanos a week, and a key in it with 112 a month. */
  async function teamAndKey(name = "research"): Promise<[string, string]> {
    const common = { organizationId: organization, actor: "cli:test" };
    const [teamId, id] = [`team_${newHex()}`, `key_${newHex()}`];
    await acts.createTeam({ ...common, id: teamId, name, limits: { ...noBudget, week: 100 } });
    await acts.createKey({
      ...{ ...unrestricted, ...common, id, name: "app", scopes: ["inference:create"], teamId },
      ...{ limits: { ...noBudget, month: 112 }, secret: newSecret() },
    });
    return [teamId, id];
  }
  async function use(organization: string, nanos: number, keyId = admitOf(organization).keyId) {
    const book = ledger(store.db, { recovery: "checkpoint" });
    const admit = admitOf(organization, { keyId, inputNanos: nanos, outputTokens: 0, outputTokens_min: 0 });
    await book.run([admit]);
    await book.run([settleOf(admit, nanos)]);
    await book.close();
  }

  /** Leaves a notice of the organization's suspension for this webhook. */
  async function leaveNotice(organization: string, url: string) {
    await setHook(acts, organization, hook(url));
    await acts.setOrganizationStatus(organization, "suspended", "cli:test");
  }
  /** Adds this number of copies of each notice that waits. */
  const copyNotices = (copies: number) =>
    store.db.query(
      `insert into notice (id, destination_id, kind, about, details, created_at, next_attempt_at)
       select gen_random_uuid(), destination_id, kind, about || n, details, created_at, next_attempt_at
       from notice, generate_series(1, $1::int) n`,
      [copies],
    );

  describe.each([
    ["the secret of a webhook", "secret", "json", secret, "--new-secret"],
    ["the URL of a channel", "address", "slack", "https://hooks.example/", "--url URL"],
  ] as const)("%s", (_, column, form, plain, remedy) => {
    const [first, second] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
    const sealed = (...keys: Uint8Array[]) => sealing(keys, (bytes) => crypto.getRandomValues(new Uint8Array(bytes)));
    const stored = async () =>
      (await store.db.query<{ own: string }>(`select ${column} as own from notice_destination`)).map(({ own }) => own);
    async function waiting(key: Sealing | null): Promise<string> {
      await none();
      const organization = await store.newOrganization();
      const acts = administration(store.db, { sealing: key });
      await setHook(acts, organization, { ...hook("https://hooks.example/"), form });
      await acts.setOrganizationStatus(organization, "suspended", "cli:test");
      return organization;
    }
    const signing = async (key: Sealing | null) => {
      await store.db.exec("update notice set next_attempt_at = store_now()");
      return (await noticeQueue(store.db, key).claim(10)).map((due) => due[column]);
    };

    test("is encrypted at rest, opens with the key of its own destination alone", async () => {
      await waiting(sealed(first));
      expect((await stored())[0]).toMatch(/^sealed:[A-Za-z0-9+/=]+$/);
      expect(await signing(sealed(first))).toEqual([plain]);
      expect(await signing(sealed(second))).toEqual([null]);
      expect(await signing(null)).toEqual([null]);
      const [theirs] = await stored();
      await waiting(sealed(first));
      await store.db.query(`update notice_destination set ${column} = $1`, [theirs]);
      expect(await signing(sealed(first))).toEqual([null]);
    });

    test("without a key is kept as it is, and encrypted once there is one", async () => {
      await waiting(null);
      expect(await stored()).toEqual([plain]);
      await noticeQueue(store.db).seal();
      expect(await signing(null)).toEqual([plain]);
      await noticeQueue(store.db, sealed(first)).seal();
      expect((await stored())[0]).toStartWith("sealed:");
      expect(await signing(sealed(first))).toEqual([plain]);
    });

    test("goes over to a new key while both are there", async () => {
      await waiting(sealed(first));
      const both = sealed(second, first);
      expect(await signing(both)).toEqual([plain]);
      await noticeQueue(store.db, both).seal();
      const again = await stored();
      await noticeQueue(store.db, both).seal();
      expect(await stored()).toEqual(again);
      expect(await signing(sealed(second))).toEqual([plain]);
      expect(await signing(sealed(first))).toEqual([null]);
    });

    test("that no key here opens sends nothing, and the problem says what to do", async () => {
      const organization = await waiting(sealed(first));
      await store.db.exec("update notice set attempts = 11");
      const { given } = node();
      await until(async () => given.length > 0, 10_000, "the notice to be given up");
      expect(given[0]).toContain(remedy);
      expect(await findHook(acts, organization)).toMatchObject({ waiting: 0 });
    });
  });

  test("what may be a secret in a URL is used, and stands in no entry of the audit log", async () => {
    const url = "https://hooks.example/sluice/a?token=s3cret#part";
    await setHook(acts, organization, hook(url));
    await setHook(acts, organization, hook(`${url}2`));
    await removeHook(acts, organization);
    const log = await acts.listAudit({ limit: 3, organizationId: organization });
    expect(log).toHaveLength(3);
    expect(JSON.stringify(log)).not.toContain("s3cret");
    expect(log[0]!.details).toMatchObject({ before: { url: "https://hooks.example/sluice/a?<query>" } });
    await setHook(acts, organization, hook(url));
    expect(await findHook(acts, organization)).toMatchObject({ url });
  });

  test("each share of a window is told once, signed, however many nodes look", async () => {
    const { got, url } = startReceiver(ending);
    await setHook(acts, organization, hook(url));
    await use(organization, 799);
    await noticeQueue(store.db).look(nothing);
    expect(await findHook(acts, organization)).toMatchObject({ waiting: 0 });
    const nodes = [node(), node()];
    await use(organization, 1);
    await until(() => got.length === 1, 10_000, "80 percent");
    await use(organization, 200);
    await until(() => got.length === 2, 10_000, "100 percent");
    await Promise.all(nodes.map((one) => one.stop()));
    expect(got.map(({ notice: { type, data } }) => [type, data.window, data.share_percent, data.limit])).toEqual([
      ["usage.share_reached", "week", 80, dollars(1_000)],
      ["usage.share_reached", "week", 100, dollars(1_000)],
    ]);
    for (const { body, headers, notice } of got) {
      expect(headers.get("sluice-notice-id")).toBe(notice.id);
      expect(headers.get("sluice-signature")).toBe(signatureOf(secret, headers.get("sluice-timestamp")!, body));
    }
    expect(nodes.flatMap(({ given }) => given)).toEqual([]);
  });

  test("the audit log has each change of a webhook, with what stood before, and never its secret", async () => {
    const first = hook("https://hooks.example.com/first");
    const then = { ...hook("https://hooks.example.com/then"), shares: [90] };
    await setHook(acts, organization, first, { secret, renews: false }, "cli:first");
    await setHook(acts, organization, then, { secret: "whsec_next", renews: true }, "cli:then");
    await removeHook(acts, organization, "cli:last");
    expect(await removeHook(acts, organization, "cli:late")).toBe(null);
    const listed = ({ url, shares, keyExpiryDays }: typeof first) => ({
      ...{ name: "webhook", form: "json", url, shares },
      key_expiry_days: keyExpiryDays,
    });
    const log = await acts.listAudit({ organizationId: organization, order: "oldest", limit: 10 });
    expect(log.map(({ actor, action, details }) => ({ actor, action, details }))).toEqual([
      { actor: "cli:first", action: "notice.set", details: { ...listed(first), new_secret: true, before: null } },
      {
        actor: "cli:then",
        action: "notice.set",
        details: { ...listed(then), new_secret: true, before: listed(first) },
      },
      { actor: "cli:last", action: "notice.remove", details: { before: listed(then) } },
    ]);
  });

  test("a team and a key are told of at their own limits, once, and with the organization's slug", async () => {
    const { slug } = (await acts.findOrganization(organization))!;
    const { got, url } = startReceiver(ending);
    const [team, key] = await teamAndKey();
    await use(organization, 79, key);
    await setHook(acts, organization, hook(url));
    await noticeQueue(store.db).look(nothing);
    expect(await findHook(acts, organization)).toMatchObject({ waiting: 0 });
    await use(organization, 1, key);
    const nodes = [node(), node()];
    await until(() => got.length === 1, 10_000, "80 percent of the team's limit");
    await use(organization, 10, key);
    await until(() => got.length === 2, 10_000, "80 percent of the key's limit");
    const [, mate] = await teamAndKey("product");
    await use(organization, 85, mate);
    await until(() => got.length === 3, 10_000, "80 percent of another team's limit");
    await noticeQueue(store.db).look(nothing);
    await Promise.all(nodes.map((one) => one.stop()));
    expect(await noticeQueue(store.db).claim(10)).toEqual([]);
    expect(got.map(({ notice }) => notice.data)).toMatchObject([
      { subject: "team", subject_id: team, name: "research", window: "week", used: dollars(80), limit: dollars(100) },
      { subject: "key", subject_id: key, name: "app", window: "month", used: dollars(90), limit: dollars(112) },
      { subject: "team", name: "product", window: "week", used: dollars(85), limit: dollars(100) },
    ]);
    expect(got.map(({ notice }) => notice.organization)).toEqual([slug, slug, slug]);
    expect(got.map(({ notice }) => notice.data.share_percent)).toEqual([80, 80, 80]);
  });

  test("a limit for models is told of beside the others, with its models", async () => {
    const { url } = startReceiver(ending);
    const [team, key] = await teamAndKey();
    const owner = uuidOf(organization, "org_")!;
    await limitModels(store.db, owner, uuidOf(team, "team_")!, "acme/*", { week: 100 });
    await limitModels(store.db, owner, owner, "acme/*", { week: 90 });
    await setHook(acts, organization, hook(url));
    await use(organization, 85, key);
    for (const _ of [1, 2]) await noticeQueue(store.db).look(nothing);
    const waiting = await noticeQueue(store.db).claim(10);
    const told = waiting.map(({ details: { subject, subject_id, models, share_percent } }) =>
      [subject, subject_id, models, share_percent].join(" "),
    );
    expect(told.sort()).toEqual([
      `organization ${organization} acme/* 80`,
      `team ${team}  80`,
      `team ${team} acme/* 80`,
    ]);
    expect(waiting.map(({ details: { plan } }) => plan)).toEqual([null, null, null]);
  });

  test("conditions are kept although the search for used shares fails", async () => {
    const condition = { about: `engine:${Bun.randomUUIDv7()}`, kind: "engine.down", ends: null, details: {} } as const;
    const failing: Database = {
      ...store.db,
      transaction: (work) =>
        store.db.transaction((tx) => {
          const query: Transaction["query"] = (text, params) =>
            text.includes("missing as (") ? Promise.reject(new Error("late")) : tx.query(text, params);
          return work({ ...tx, query });
        }),
    };
    await expect(noticeQueue(failing).look(() => [condition])).rejects.toThrow("late");
    const kept = await store.db.query("select from notice_condition where about = $1", [condition.about]);
    expect(kept).toHaveLength(1);
    await store.db.query("delete from notice_condition where about = $1", [condition.about]);
  });

  test("a raise that begins and ends tells of no share twice, and of what is above the limit below once", async () => {
    const { url } = startReceiver(ending);
    const [id, key] = await teamAndKey();
    await setHook(acts, organization, hook(url));
    const told = async () => {
      await noticeQueue(store.db).look(nothing);
      const rows = await store.db.query<{ details: { share_percent: number; limit: Money } }>(
        "select details from notice where details->>'subject' = 'team' and destination_id in (select id from notice_destination where organization_id = $1) order by created_at, about",
        [uuidOf(organization, "org_")],
      );
      return rows.map(({ details: { share_percent, limit } }) => [share_percent, nanosOf(limit)]);
    };
    await use(organization, 85, key);
    expect(await told()).toEqual([[80, 100]]);
    const subject = { id, organizationId: organization };
    const raise = { limits: { ...noBudget, week: 130 }, until: new Date(Date.now() + 3_600_000) };
    await setRaise(store.db, subject, raise);
    expect(await told()).toEqual([[80, 100]]);
    await use(organization, 25, key);
    expect(await told()).toEqual([[80, 100]]);
    await setRaise(store.db, subject, null);
    const both = [
      [80, 100],
      [100, 100],
    ];
    expect(await told()).toEqual(both);
    await setRaise(store.db, subject, raise);
    await setRaise(store.db, subject, null);
    expect(await told()).toEqual(both);
  });

  test("of more than there is room for, the largest shares are told first", async () => {
    const [, key] = await teamAndKey();
    await use(organization, 95, key);
    await setHook(acts, organization, { ...hook("http://127.0.0.1:9/"), shares: [80, 81, 82] });
    await store.db.query(
      `insert into notice (id, destination_id, kind, about, details, created_at, next_attempt_at)
       select gen_random_uuid(), d.id, 'usage.share_reached', n, '{}', now(), '2100-01-01'
       from notice_destination d, generate_series(1, 997) n where d.organization_id = $1`,
      [organization.slice(4)],
    );
    await noticeQueue(store.db).look(nothing);
    await noticeQueue(store.db).look(nothing);
    const claimed = await noticeQueue(store.db).claim(10);
    expect(claimed.map(({ details }) => details.subject)).toEqual(["team", "team", "team"]);
  });

  test("what is refused comes again with the same id, and outlives the node that tried", async () => {
    const { got, url } = startReceiver(ending, (before) => new Response(null, { status: before === 0 ? 404 : 204 }));
    await leaveNotice(organization, url);
    const first = node();
    await until(async () => (await findHook(acts, organization))?.problem === "it answered 404", 10_000, "the refusal");
    await first.stop();
    expect(await findHook(acts, organization)).toMatchObject({ waiting: 1 });
    const other = await store.newOrganization();
    await setHook(acts, other, hook(url));
    const undelivered = async () => acts.pageDestinations({ limit: 9, undelivered: true });
    const ours = { organizationId: organization, waiting: 1 };
    expect(await undelivered()).toMatchObject({ items: [ours], hasMore: false });
    const all = await acts.pageDestinations({ limit: 1 });
    expect(all).toMatchObject({ items: [{}], hasMore: true });
    const rest = await acts.pageDestinations({ limit: 99, after: all.items[0]!.id });
    expect([...all.items, ...rest.items].map(({ organizationId }) => organizationId)).toContain(other);
    expect((await acts.pageDestinations({ limit: 9, organizationId: other })).items).toHaveLength(1);
    await store.setClock(new Date(Date.now() + nextAttempt_ms(1)! + 1_000));
    node();
    await until(async () => (await findHook(acts, organization))?.waiting === 0, 10_000, "the delivery");
    await store.setClock(null);
    expect(got.map(({ notice }) => notice.type)).toEqual(["organization.suspended", "organization.suspended"]);
    expect(new Set(got.map(({ notice }) => notice.id)).size).toBe(1);
    expect(await findHook(acts, organization)).toMatchObject({ waiting: 0, problem: null });
    expect(await undelivered()).toMatchObject({ items: [] });
  });

  test("one that a node has claimed is nobody else's until the lease is over, and then another's", async () => {
    await leaveNotice(organization, "http://127.0.0.1:9/");
    const [queue, other] = [noticeQueue(store.db), noticeQueue(await store.another())];
    const claims = (await Promise.all([queue.claim(10), other.claim(10)])).flat();
    expect(claims).toMatchObject([{ organizationId: organization, attempts: 1 }]);
    // Concurrent claims skip each other's rows; the lease keeps later claims from them.
    expect(await other.claim(10)).toEqual([]);
    await store.setClock(new Date(Date.now() + 61_000));
    expect(await other.claim(10)).toMatchObject([{ id: claims[0]!.id, attempts: 2 }]);
    // The first node reports its result only now, after its lease: that changes nothing any more.
    await queue.sent(claims[0]!, { problem: null }, null);
    expect(await findHook(acts, organization)).toMatchObject({ waiting: 1 });
    await store.setClock(null);
    await removeHook(acts, organization);
    expect(await queue.claim(10)).toEqual([]);
  });

  test("one of another destination is claimed in the next round, however many wait where nobody answers", async () => {
    await leaveNotice(organization, "http://127.0.0.1:9/");
    await copyNotices(99);
    const other = await store.newOrganization();
    await leaveNotice(other, "http://127.0.0.1:9/");
    const claimed = (await noticeQueue(store.db).claim(3)).map(({ organizationId }) => organizationId);
    expect(claimed.filter((id) => id === other)).toEqual([other]);
    expect(claimed).toHaveLength(3);
  });

  test("one of another destination is sent beside those that wait for an answer, of which there are few", async () => {
    const never = Promise.withResolvers<Response>();
    const silent = startReceiver(ending, () => never.promise);
    await leaveNotice(organization, silent.url);
    await copyNotices(99);
    node();
    ending.push(() => never.resolve(new Response()));
    await until(() => silent.got.length === 4, 5_000, "four at a time");
    const well = startReceiver(ending);
    const other = await store.newOrganization();
    await leaveNotice(other, well.url);
    await until(() => well.got.length === 1, 5_000, "the notice of another destination");
    expect(silent.got).toHaveLength(4);
  });

  test("tests of a destination come one at a time, and twenty an hour", async () => {
    const own = await setHook(acts, organization, hook("http://127.0.0.1:9/"));
    const queue = noticeQueue(store.db);
    const add = () => acts.addTest(own, "cli:test");
    const sent = async () => {
      const [due] = await queue.claim(1);
      await queue.sent(due!, { problem: null }, null);
    };
    const [first, second] = await Promise.all([add(), add()]);
    expect([first, second]).toContain("waiting");
    await sent();
    for (let done = 1; done < 20; done++) {
      expect(await add()).toHaveProperty("id");
      await sent();
    }
    expect(await add()).toBe("too_many");
    await store.setClock(new Date(Date.now() + 3_601_000));
    expect(await add()).toHaveProperty("id");
    await store.setClock(null);
  });

  test("of an event is kept where shares have taken all the room", async () => {
    const { id } = await setHook(acts, organization, hook("http://127.0.0.1:9/"));
    await store.db.query(
      `insert into notice (id, destination_id, kind, about, details, created_at, next_attempt_at)
       select gen_random_uuid(), $1, 'usage.share_reached', n::text, '{}', store_now(), store_now() from generate_series(1, 1000) n`,
      [uuidOf(id, "dest_")],
    );
    await acts.setOrganizationStatus(organization, "suspended", "cli:test");
    const kinds = await store.db.query("select kind from notice where kind <> 'usage.share_reached'");
    expect(kinds).toEqual([{ kind: "organization.suspended" }]);
  });

  test("a key that is about to expire is told once", async () => {
    const { got, url } = startReceiver(ending);
    await setHook(acts, organization, hook(url));
    const inDays = (days: number) => new Date(Date.now() + days * 86_400_000);
    const insert = (expires: Date) =>
      store.db.query(
        `insert into api_key (id, organization_id, name, scopes, created_at, expires_at)
         values ($1, $2, 'soon', '{models:read}', now(), $3)`,
        [Bun.randomUUIDv7(), `${organization.slice(4)}`, expires],
      );
    await insert(inDays(13));
    await insert(inDays(15));
    node();
    await until(() => got.length === 1, 10_000, "the notice");
    await noticeQueue(store.db).look(nothing);
    expect(await noticeQueue(store.db).claim(10)).toEqual([]);
    expect(got[0]!.notice).toMatchObject({ type: "key.expiring", data: { name: "soon" } });
  });
});

test("a webhook inside is not asked, one that redirects is not followed, one that hangs is left", async () => {
  const open = { allowPrivate: true, wait_ms: 5_000 };
  const { got, url } = startReceiver(ending);
  const closed = { allowPrivate: false, wait_ms: 5_000 };
  for (const inside of [url, url.replace("http:", "https:"), "https://localhost/", "https://[::ffff:7f00:1]/"])
    expect(await sendWebhook(request(inside), closed)).toMatch(/not public|https:\/\//);
  expect(got).toEqual([]);
  const redirecting = startReceiver(ending, () => Response.redirect(url));
  expect(await sendWebhook(request(redirecting.url), open)).toBe("it answered 302");
  expect(got).toEqual([]);
  const hanging = startReceiver(ending, () => new Promise<never>(() => {}));
  expect(await sendWebhook(request(hanging.url), { ...open, wait_ms: 300 })).toBe("it did not answer within 0.3 s");
  expect(await sendWebhook(request("http://127.0.0.1:9/"), open)).toMatch(/^it cannot be reached/);
  // The body of this response never ends. Its status is enough.
  const endless = startReceiver(
    ending,
    () => new Response(new ReadableStream({ pull: (to) => to.enqueue(new Uint8Array(65_536)) })),
  );
  expect(await sendWebhook(request(endless.url), open)).toBeNull();
});

test("which addresses are public", () => {
  const inside =
    "127.0.0.1 10.1.2.3 169.254.169.254 192.168.1.1 172.31.0.1 100.64.0.1 ::1 :: fe80::1 fd00::1 fec0::1 " +
    "::ffff:10.0.0.1 ::ffff:7f00:1 64:ff9b::a00:1 64:ff9b:1::1 2001::1 2001:0:ffff::1";
  for (const address of inside.split(" ")) expect([address, isPublicAddress(address)]).toEqual([address, false]);
  for (const address of ["93.184.216.34", "2606:2800:220:1::1"])
    expect([address, isPublicAddress(address)]).toEqual([address, true]);
});

/** Sends a notice to a host name, which `look` resolves. */
const sentTo = (look: (host: string) => Promise<string[]>) =>
  sendWebhook(request("https://hooks.example/notices"), { allowPrivate: false, wait_ms: 50 }, look);

test("a name server that never answers costs no more than the webhook's time", async () => {
  expect(await sentTo(() => new Promise(() => {}))).toBe("it did not answer within 0.05 s");
});

test("a name that cannot be found, or that leads inside by any of its addresses, is not called", async () => {
  expect(await sentTo(() => Promise.reject(new Error("no such name")))).toBe("it cannot be reached: no such name");
  for (const addresses of [["10.0.0.1"], ["203.0.112.1", "127.0.0.1"], ["::1"], []])
    expect(await sentTo(async () => addresses)).toBe("its name leads to an address that is not public");
});

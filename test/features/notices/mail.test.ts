/**
 * Notices by mail, over a real mail server: who gets a mail, that it is sent once, and mail servers that refuse, are
 * slow, are down, or have an untrusted certificate.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { isAllowedAt, mailAddress } from "../../../src/features/notices/mail/address.ts";
import { type MailServer, mailRound } from "../../../src/features/notices/mail/smtp.ts";
import { administration } from "../../../src/stores/postgres/administration.ts";
import { mailSubscriptions } from "../../../src/stores/postgres/mail-recipients.ts";
import { noticeQueue } from "../../../src/stores/postgres/notices.ts";
import { type Store, stores } from "../../core/store/ledger-stores.ts";
import { authority } from "../../harness/certificates.ts";
import { times } from "../../harness/depth.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { mailboxes } from "../../harness/mail-server.ts";
import { standardStore } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { startSender } from "./sender.ts";

setDefaultTimeout(60_000);

const ending = endedAfterEach();
const newMailbox = mailboxes(ending);

const content = { subject: "x", text: "x\n", html: "<p>x</p>", at: new Date(0), unsubscribe: null };
const mailTo = (to: string, name = "notice_1") => ({ ...content, to, name });

/** Sends one mail. Returns the reason why it was refused, and the errors for which the server is not used. */
async function sendOnce(server: MailServer, to = "ann@acme.example", wait_ms = 20_000) {
  const failures: unknown[] = [];
  const round = mailRound(server, { wait_ms, failed: (cause) => failures.push(cause) });
  const refusal = await round.send(mailTo(to));
  round.end();
  return { refusal, failures };
}

describe("the server", () => {
  const known = authority();
  const own = known.issue(["localhost", "127.0.0.1"]);
  const keys = { key: own.key, cert: own.certificate };
  const user = { user: "sluice", password: "pa ss" };

  test.each(["starttls", "implicit"] as const)("gets mail by %s alone, from somebody signed in", async (tls) => {
    const { settings, mails } = await newMailbox({ tls, ...keys, ca: known.certificate, ...user });
    expect(await sendOnce(settings)).toEqual({ refusal: null, failures: [] });
    expect(mails).toMatchObject([
      { isEncrypted: true, user: "sluice", from: "sluice@acme.example", to: ["ann@acme.example"] },
    ]);
  });

  const unusable = (why: string) => ({ problem: `the mail server of the service ${why}`, isFinal: false });

  test("gets nothing, no password either, if its certificate is of somebody else, or not for its name", async () => {
    const strange = authority().issue(["127.0.0.1"]);
    const elsewhere = known.issue(["mail.elsewhere.example"]);
    for (const one of [strange, elsewhere])
      for (const tls of ["starttls", "implicit"] as const) {
        let signIns = 0;
        const box = await newMailbox({
          ...{ tls, key: one.key, cert: one.certificate, ca: known.certificate, ...user },
          onAuth: (_, __, done) => done(null, { user: String(++signIns) }),
        });
        const { refusal, failures } = await sendOnce(box.settings);
        expect([tls, refusal]).toEqual([tls, unusable("has a certificate that is not trusted")]);
        expect([box.mails.length, signIns, failures.length]).toEqual([0, 0, 1]);
      }
  });

  test("gets nothing without STARTTLS, where it is asked for", async () => {
    const { settings, mails } = await newMailbox({ tls: "off", ...user, authOptional: true, allowInsecureAuth: true });
    const { refusal } = await sendOnce({ ...settings, tls: "starttls" });
    expect(refusal).toEqual(unusable("offers no STARTTLS"));
    expect(mails).toEqual([]);
  });

  test("that refuses the password, is gone, or says nothing, keeps the mail for later; no problem names where it is", async () => {
    const { settings } = await newMailbox({ tls: "starttls", ...keys, ca: known.certificate, ...user });
    const refused = await sendOnce({ ...settings, password: "s3cret" });
    expect(refused.refusal).toEqual(unusable("refuses the user or the password"));
    const gone = await newMailbox();
    gone.stop();
    expect((await sendOnce(gone.settings)).refusal).toEqual(unusable("cannot be reached"));
    const silent = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    ending.push(() => silent.stop(true));
    const late = await sendOnce({ ...gone.settings, port: silent.port }, undefined, 300);
    expect(late.refusal).toEqual(unusable("did not answer in time"));
    const busy = await newMailbox({
      onConnect: (_, done) => done(Object.assign(new Error("busy"), { responseCode: 421 })),
    });
    expect((await sendOnce(busy.settings)).refusal).toEqual(unusable("refuses mail now (421)"));
  });

  test("that sends much before its greeting fills no memory", async () => {
    const line = Buffer.from(`220-${"x".repeat(1_000)}\r\n`.repeat(60));
    const talkative = Bun.listen({
      ...{ hostname: "127.0.0.1", port: 0 },
      socket: { open: (socket) => void socket.write(line), drain: (socket) => void socket.write(line), data() {} },
    });
    ending.push(() => talkative.stop(true));
    const { settings } = await newMailbox();
    const { refusal } = await sendOnce({ ...settings, port: talkative.port }, undefined, 5_000);
    expect(refusal).toMatchObject({ isFinal: false });
  });

  test("is asked once for all mails of a round, and goes on after one that it refuses", async () => {
    const answers: Record<string, number> = { "no@acme.example": 550, "later@acme.example": 451 };
    const { settings, mails, connections } = await newMailbox({
      recipient: (address) => (answers[address] ? { code: answers[address], says: "not\r\nnow" } : null),
    });
    const round = mailRound(settings, { wait_ms: 20_000, failed: (cause) => expect(cause).toBeNull() });
    const all = ["no@acme.example", "ann@acme.example", "later@acme.example", "lea@acme.example"];
    const refusals = await Promise.all(all.map((to) => round.send(mailTo(to))));
    round.end();
    expect(refusals.map((refusal) => refusal?.isFinal ?? null)).toEqual([true, null, false, null]);
    expect(refusals[0]!.problem).toMatch(/^the mail server refused no@acme\.example: 550[ -]/);
    expect(mails.map(({ to }) => to[0])).toEqual(["ann@acme.example", "lea@acme.example"]);
    expect(connections()).toBe(1);
  });

  test("that takes one mail for each connection gets each mail", async () => {
    const one = await newMailbox({
      onMailFrom: (_, { transaction }, done) =>
        done(transaction > 1 ? Object.assign(new Error("enough"), { responseCode: 421 }) : null),
    });
    const round = mailRound(one.settings, { wait_ms: 20_000, failed: (cause) => expect(cause).toBeNull() });
    const send = async (to: string) => {
      while ((await round.send(mailTo(to))) !== null);
    };
    for (const to of ["a@acme.example", "b@acme.example", "c@acme.example"]) await send(to);
    round.end();
    expect(one.mails.map(({ to }) => to[0])).toEqual(["a@acme.example", "b@acme.example", "c@acme.example"]);
  });
});

describe("addresses", () => {
  test.each([
    ["Ann.Example+x@Acme.Example", "ann.example+x@acme.example"],
    ["ann@bücher.example", "ann@xn--bcher-kva.example"],
    ["ann@例え.テスト", "ann@xn--r8jz45g.xn--zckzah"],
    ["ann@acme.example\r\nBcc: all@acme.example", null],
    ["ann@acme.example\nx", null],
    ["ann@acme.example, lea@acme.example", null],
    ["Ann <ann@acme.example>", null],
    ['"a b"@acme.example', null],
    ["ann@[127.0.0.1]", null],
    ["ann@127.0.0.1", null],
    ["ann@localhost", null],
    ["ännchen@acme.example", null],
    [".ann@acme.example", null],
    ["ann@@acme.example", null],
    ["@acme.example", null],
    ["ann@", null],
    ["", null],
    [`${"a".repeat(65)}@acme.example`, null],
    [`ann@${"a.".repeat(130)}example`, null],
  ])("%j is %j", (written, address) => {
    expect(mailAddress(written)).toBe(address);
  });

  test("have nothing but ASCII without spaces, one @ and no comma, whatever was written, and stay as they are", () => {
    const written = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.tuple(fc.string(), fc.domain()).map((parts) => parts.join("@")),
    );
    fc.assert(
      fc.property(written, (text) => {
        const address = mailAddress(text);
        if (address === null) return;
        expect(address).toMatch(/^[!-+\--?A-~]+@[a-z0-9.-]+$/);
        expect(mailAddress(address)).toBe(address);
      }),
      { numRuns: times(500, 20_000) },
    );
  });

  test("are of an allowed domain, and not of one that ends like it", () => {
    const tried = ["a@acme.example", "a@evil-acme.example", "a@x.acme.example"];
    expect(tried.map((one) => isAllowedAt(["acme.example"], one))).toEqual([true, false, false]);
    expect(isAllowedAt([], "a@anywhere.example")).toBe(true);
  });
});

describe("the queue", () => {
  let store: Store;
  beforeAll(async () => {
    store = await stores[standardStore]();
  });
  afterAll(() => store?.close());
  afterEach(() => store.db.exec("delete from notice_destination; delete from notice"));

  const acts = () => administration(store.db);

  const node = (server: () => MailServer | null) =>
    startSender(ending, {
      queue: noticeQueue(store.db),
      allowsPrivate: () => false,
      mailServer: server,
      mailFailed: () => {},
    });
  async function setMail(organization: string | null, to: string[], name = "mail"): Promise<void> {
    const at = { address: to.join(","), host: to.join(", ") };
    const settings = { form: "mail" as const, ...at, shares: [], keyExpiryDays: 0 };
    const made = { id: `dest_${Bun.randomUUIDv7().replaceAll("-", "")}`, secret: "x", renews: false };
    await acts().setDestination(organization, name, () => settings, made, "cli:test");
  }
  const found = async (organization: string) => (await acts().findDestination(organization, "mail"))!;
  const suspend = (organization: string) => acts().setOrganizationStatus(organization, "suspended", "cli:test");
  const due = () => store.db.exec("update notice set next_attempt_at = store_now() where next_attempt_at is not null");

  test("sends each recipient a mail of their own, once, with the own link that unsubscribes; again it has the same ID", async () => {
    const organization = await store.newOrganization();
    let isLost = true;
    const box = await newMailbox({
      message: () => (isLost ? { code: 451, says: "later" } : null),
      recipient: (address) => {
        if (address === "lea@acme.example") isLost = false;
        return null;
      },
    });
    await setMail(organization, ["ann@acme.example", "lea@acme.example"]);
    await suspend(organization);
    const nodes = [node(() => box.settings), node(() => box.settings)];
    await until(() => box.mails.length === 1);
    await until(async () => (await found(organization)).problem !== null);
    await due();
    await until(() => box.mails.length === 2);
    await until(async () => (await found(organization)).waiting === 0);
    expect(await found(organization)).toMatchObject({ problem: null, to: ["ann@acme.example", "lea@acme.example"] });
    const { slug } = (await acts().findOrganization(organization))!;
    expect(box.mails.map(({ to }) => to)).toEqual([["lea@acme.example"], ["ann@acme.example"]]);
    const links = box.mails.map(({ headers, text, html, title }) => {
      expect(title).toBe(`The organization ${slug} was suspended`);
      expect(headers).toMatchObject({
        from: "Sluice <sluice@acme.example>",
        "auto-submitted": "auto-generated",
        "list-unsubscribe-post": "List-Unsubscribe=One-Click",
      });
      const [, link] = /^<(https:\/\/console\.example\/unsubscribe\/[0-9a-f]{32})>$/.exec(
        headers["list-unsubscribe"]!,
      )!;
      expect(text).toContain(link!);
      expect(html).toContain(`"${link}"`);
      return link;
    });
    expect(new Set(links).size).toBe(2);
    expect(new Set(box.mails.map(({ headers }) => headers["message-id"])).size).toBe(2);
    expect(nodes.flatMap(({ given }) => given)).toEqual([]);
  });

  test("gives up who is refused for good, and tries the others again; without a server it waits", async () => {
    const organization = await store.newOrganization();
    let server: MailServer | null = null;
    const asked: string[] = [];
    let isGreylisted = true;
    const box = await newMailbox({
      recipient(address) {
        asked.push(address);
        if (address === "gone@acme.example") return { code: 550, says: "no such user" };
        return address === "grey@acme.example" && isGreylisted ? { code: 450, says: "greylisted" } : null;
      },
    });
    await setMail(organization, ["gone@acme.example", "grey@acme.example", "ann@acme.example"]);
    await suspend(organization);
    const { given } = node(() => server);
    const missing = "the service sends no mail: smtp is missing in sluice.yaml";
    await until(async () => (await found(organization)).problem === missing);
    server = box.settings;
    await due();
    await until(async () => /greylisted/.test((await found(organization)).problem ?? ""));
    expect([(await found(organization)).waiting, given]).toEqual([1, []]);
    isGreylisted = false;
    await due();
    await until(async () => (await found(organization)).waiting === 0);
    expect(box.mails.map(({ to }) => to[0])).toEqual(["ann@acme.example", "grey@acme.example"]);
    expect(asked.filter((address) => address === "gone@acme.example")).toHaveLength(1);
    expect(given).toEqual([]);
  });

  test("that is refused by all for good is not tried again", async () => {
    const organization = await store.newOrganization();
    const box = await newMailbox({ recipient: () => ({ code: 550, says: "no such user" }) });
    await setMail(organization, ["gone@acme.example"]);
    await suspend(organization);
    const { given } = node(() => box.settings);
    await until(() => given.length === 1);
    expect(given[0]).toMatch(/^mail: the mail server refused gone@acme\.example: 550/);
    expect(await found(organization)).toMatchObject({ waiting: 0, problem: expect.stringContaining("no such user") });
  });

  test("tells nobody who has unsubscribed, whatever destination names them, and in no other organization", async () => {
    const [organization, other] = [await store.newOrganization(), await store.newOrganization()];
    const box = await newMailbox();
    for (const one of [organization, other]) await setMail(one, ["ann@acme.example", "lea@acme.example"]);
    const [row] = await store.db.query<{ secret: string }>(
      `select replace(id::text, '-', '') as secret from mail_recipient
       where organization_id = $1 and address = 'ann@acme.example'`,
      [organization.slice(4)],
    );
    const subscriptions = mailSubscriptions(store.db);
    expect(await subscriptions.subscribe(row!.secret, false)).toMatchObject({
      address: "ann@acme.example",
      isSubscribed: false,
    });
    expect(await subscriptions.subscribe("0".repeat(32), false)).toBeNull();
    expect(await subscriptions.findSubscription("' or true --")).toBeNull();
    await acts().removeDestination(organization, "mail", "cli:test");
    await setMail(organization, ["ann@acme.example", "lea@acme.example"]);
    expect(await found(organization)).toMatchObject({ unsubscribed: ["ann@acme.example"] });
    for (const one of [organization, other]) await suspend(one);
    node(() => box.settings);
    await until(() => box.mails.length === 3);
    await until(async () => (await found(organization)).waiting + (await found(other)).waiting === 0);
    const slugs = await Promise.all([organization, other].map(async (id) => (await acts().findOrganization(id))!.slug));
    expect(box.mails.map(({ title, to }) => `${title} ${to}`).sort()).toEqual(
      [
        `The organization ${slugs[0]} was suspended lea@acme.example`,
        `The organization ${slugs[1]} was suspended ann@acme.example`,
        `The organization ${slugs[1]} was suspended lea@acme.example`,
      ].sort(),
    );
    const entries = await store.db.query("select action, actor from audit_entry where action like 'notice.%subscribe'");
    expect(entries).toEqual([{ action: "notice.unsubscribe", actor: "mail" }]);
  });
});

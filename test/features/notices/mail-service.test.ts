/**
 * Mail from a running node through a real mail server: a test mail; the unsubscribe link, which does nothing when a
 * scanner opens it; the decision on a request for a higher limit; and what recipients must not see or do.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { Browser } from "../../harness/browser.ts";
import { laptop } from "../../harness/laptop.ts";
import { type Mailbox, mailbox } from "../../harness/mail-server.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import { typedHere } from "../identity/typed-here.ts";

setDefaultTimeout(120_000);

const password = "s3cret-of-smtp";
let box: Mailbox;
let node: PeopleNode;
const home = laptop();
beforeAll(async () => {
  box = await mailbox({ user: "sluice", password, allowInsecureAuth: true });
  const { host, port, from } = box.settings;
  node = await startPeopleNode({
    secrets: [password],
    more: `smtp:
  { host: ${host}, port: ${port}, tls: "off", user: sluice, password: ${password}, from: ${from}, recipient_domains: [X.test] }
`,
  });
  for (const [name, group] of Object.entries({ lea: "leads", ann: "research" }))
    node.provider.claims.set(name, { name, email: `${name}@x.test`, email_verified: true, groups: [group] });
  // A person is known after the first sign-in. Ann signs in by a command, because she later uses one for her request.
  node.provider.account = "lea";
  await new Browser().visit(`${node.consoleUrl}/sign-in`);
  node.provider.account = "ann";
  await home.signIn(node);
});
afterAll(async () => {
  home[Symbol.dispose]();
  await node?.[Symbol.asyncDispose]();
  box?.stop();
});

const notice = (verb: string) => ["notice", verb, node.sluice.organization, "--name", "mail"];
const set = (...words: string[]) => node.sluice.json(...notice("set"), ...words);
const unsubscribed = async () => (await node.sluice.json<{ unsubscribed: string[] }>(...notice("show"))).unsubscribed;
const newest = (to: string) => box.mails.findLast((mail) => mail.to[0] === to);

test("a test comes by mail, with a link that unsubscribes for all but the administrator's own address", async () => {
  await set("--form", "mail", "--to", "Lea@x.test,list@x.test");
  const tried = await node.sluice.cli(...notice("test"));
  expect(tried).toEqual({ code: 0, stdout: "A test arrived at lea@x.test, list@x.test.\n", stderr: "" });
  expect(box.mails.map(({ title, to, user }) => [title, to, user])).toEqual([
    ["A test of notices of test", ["lea@x.test"], "sluice"],
    ["A test of notices of test", ["list@x.test"], "sluice"],
  ]);
  expect(newest("lea@x.test")!.raw).not.toMatch(/unsubscribe/i);
  expect(newest("list@x.test")!.headers["list-unsubscribe"]).toStartWith(`<${node.consoleUrl}/unsubscribe/`);
});

test("who only follows the link unsubscribes nobody; one POST does, again and again, and the button takes it back", async () => {
  const link = newest("list@x.test")!.headers["list-unsubscribe"]!.slice(1, -1);
  for (const method of ["GET", "GET", "HEAD"]) expect((await fetch(link, { method })).status).toBe(200);
  const asked = await (await fetch(link)).text();
  expect(asked).toContain('<form method="post">');
  expect(await unsubscribed()).toEqual([]);
  // Sends the request that a mail program sends for one-click unsubscribe: without a cookie and without an Origin.
  const oneClick = (url: string) =>
    fetch(url, { method: "POST", body: new URLSearchParams({ "List-Unsubscribe": "One-Click" }) });
  for (let time = 0; time < 2; time++) expect((await oneClick(link)).status).toBe(200);
  expect(await unsubscribed()).toEqual(["list@x.test"]);
  expect(await (await fetch(link)).text()).toContain("You get no more mail");
  const before = box.mails.length;
  await node.sluice.json(...notice("test"));
  expect(box.mails.slice(before).map(({ to }) => to)).toEqual([["lea@x.test"]]);
  await set("--to", "list@x.test,lea@x.test");
  expect(await unsubscribed()).toEqual(["list@x.test"]);
  expect((await fetch(link, { method: "POST", body: new URLSearchParams({ subscribe: "yes" }) })).status).toBe(200);
  expect(await unsubscribed()).toEqual([]);
  for (const strange of ["0".repeat(32), "1'--", "%0d%0aset-cookie:x"]) {
    const answer = await oneClick(`${node.consoleUrl}/unsubscribe/${strange}`);
    expect([strange, answer.status, answer.headers.get("set-cookie")]).toEqual([strange, 404, null]);
  }
  const elsewhere = await fetch(link, { method: "POST", headers: { host: "evil.example" }, body: "x=y" });
  expect(elsewhere.status).toBeGreaterThanOrEqual(400);
  const audit = await node.sluice.cli("audit", "list");
  expect(audit.stdout).toMatch(/notice\.unsubscribe/);
  // The audit log contains no mail address, because its entries cannot be deleted.
  expect(audit.stdout).not.toContain("@x.test");
});

test("who asked for more hears of the decision at their verified address", async () => {
  const { sluice } = node;
  const ann = (await sluice.json<{ id: string }>("person", "show", "ann@x.test")).id;
  await sluice.json("limit", "set", "person", ann, "--org", sluice.organization, "month=5");
  const ask = async () => {
    const words = "limit request --limit month --amount 50 --message release --json";
    const { stdout } = await typedHere(home, ...words.split(" "));
    return (JSON.parse(stdout) as { id: string }).id;
  };
  const declined = await ask();
  await until(() => newest("lea@x.test")?.title === "ann of test asks for more", 30_000, "the mail to who decides");
  expect(newest("lea@x.test")!.link).toBe(`${node.consoleUrl}/limit-requests/${declined}`);
  await sluice.json("limit", "decline", declined, "--reason", "not this month");
  await until(() => newest("ann@x.test") !== undefined, 30_000, "the refusal");
  expect(newest("ann@x.test")).toMatchObject({
    title: "Your request for more in test was declined",
    facts: { Limit: "person, month", Was: "$5.00", Why: "not this month" },
    link: `${node.consoleUrl}/limit-requests/${declined}`,
  });
  expect(newest("ann@x.test")!.raw).not.toMatch(/unsubscribe/i);
  const approved = await ask();
  const day = new Date(Date.now() + 7 * 86_400_000).toISOString().slice(0, 10);
  await sluice.json("limit", "approve", approved, "--until", day);
  await until(() => newest("ann@x.test")!.link!.endsWith(approved), 30_000, "the approval");
  expect(newest("ann@x.test")).toMatchObject({
    title: "Your request for more in test was approved",
    facts: { "Is now": "$50.00", Until: `${day} 00:00 UTC` },
  });
  expect(box.mails.filter(({ to }) => to[0] === "ann@x.test")).toHaveLength(2);
});

test("addresses are checked, and nobody is shown the password", async () => {
  for (const [words, problem] of [
    [["--to", "not an address"], "is no address of mail"],
    [["--to", "a@x.test\r\nBcc: b@x.test"], ""],
    [["--to", "a@other.test"], "It goes to these domains alone: x.test"],
    [["--url", "https://hooks.example.com/x"], "Mail goes to addresses"],
    [["--to", Array.from({ length: 21 }, (_, at) => `a${at}@x.test`).join(",")], ""],
  ] as const) {
    await expect(set(...words)).rejects.toThrow(problem);
  }
  const shown = await node.sluice.cli("config", "show");
  const smtp = { user: "sluice", hasPassword: true, recipientDomains: ["x.test"] };
  expect(JSON.parse(shown.stdout).smtp).toMatchObject(smtp);
  expect(shown.stdout).not.toContain(password);
  expect(readFileSync(home.signInFile(node.serviceUrl), "utf8")).not.toContain(password);
});

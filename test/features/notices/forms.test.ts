/** The text of notices in Slack's and Teams' documented formats and by mail, with names of any characters. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { deliver, withoutUrl } from "../../../src/features/notices/deliver.ts";
import { noticeKinds } from "../../../src/features/notices/kinds.ts";
import { type MailRound, mailRound } from "../../../src/features/notices/mail/smtp.ts";
import type { DueNotice, NoticeForm } from "../../../src/features/notices/store/notice.ts";
import { type Channel, slackChannel, teamsChannel } from "../../harness/channels.ts";
import { times } from "../../harness/depth.ts";
import { mailbox } from "../../harness/mail-server.ts";

const forms = ["slack", "teams", "mail"] as const;
const channels = { slack: slackChannel(), teams: teamsChannel() } as Record<(typeof forms)[number], Channel>;
let round: MailRound;
beforeAll(async () => {
  const mail = await mailbox();
  channels.mail = mail;
  round = mailRound(mail.settings, { wait_ms: 300_000, failed: (cause) => console.error(cause) });
});
afterAll(() => {
  round.end();
  for (const form of forms) channels[form].stop();
});

const at = "2026-11-30T08:00:00.000Z";
/** The details of notices of all kinds, with a name that a user chose. */
const details = (name: string) => ({
  ...{ subject: "team", name, models: null, window: "week", share_percent: 80, key_id: "key_1", expires_at: at },
  ...{ used: { amount: "8.000000000", currency: "USD" }, limit: { amount: "10.000000000", currency: "USD" } },
  ...{ reset_at: at, full_at: at, since: at, upstream: name, node: name },
  ...{ nodes: [name, "node-2:80"], problems: [name, name] },
  ...{ person: name, message: name, limit_request_id: "lreq_1", asked: null },
  value: { amount: "10.000000000", currency: "USD" },
});
/**
 * The details of a notice about a person's request for a higher limit. Its `limit` is the limit's name, while that of
 * other notices is an amount.
 */
const asking = {
  ...{ limit: "month", organization: "acme", state: "approved", until: at, reason: null },
  granted: { amount: "20.000000000", currency: "USD" },
};
const due = (form: NoticeForm, kind: DueNotice["kind"], name: string, address: string): DueNotice => ({
  ...{ id: "notice_0", organizationId: "org_0", organization: "acme", kind, createdAt: new Date(at) },
  details: { ...details(name), ...(kind.startsWith("limit.") ? asking : {}) },
  ...{ attempts: 1, destination: "alerts", form, address, secret: null },
  recipients: [{ address, unsubscribes: null }],
});
const withoutMail = { allowPrivate: true, consoleUrl: "https://console.example", now_ms: Date.parse(at), mail: null };
const send = async (form: keyof typeof channels, kind: DueNotice["kind"], name: string) =>
  (await deliver(due(form, kind, name, channels[form].url), { ...withoutMail, mail: { round, domains: [] } })).problem;
const last = (form: keyof typeof channels) => channels[form].got.at(-1)!;

test.each(forms)("%s takes every kind, with a title and a link to the console", async (form) => {
  for (const kind of noticeKinds) {
    expect([kind, await send(form, kind, "research"), channels[form].refused]).toEqual([kind, null, []]);
    expect(last(form).title.length).toBeGreaterThan(10);
    expect(last(form).link).toStartWith("https://console.example/");
  }
});

test.each(forms)("%s shows how much is used, until when it lasts and when it starts anew", async (form) => {
  await send(form, "usage.share_reached", "research");
  const { title, facts, link } = last(form);
  expect({ title, facts, link }).toEqual({
    title: "80 % of the limit of the week of team research of acme are used",
    facts: {
      Used: "$8.00",
      Limit: "$10.00",
      "At this pace full": "2026-11-30 08:00 UTC",
      "Starts anew": "2026-11-30 08:00 UTC",
    },
    link: "https://console.example/organizations/acme/limits",
  });
});

const hostile = [
  "<!channel> <@U1> <https://evil.example|log in>",
  "&lt;!here&gt; & <b>",
  "[log in](https://evil.example) **now** _x_ ~y~ `z`",
  "- a\n# b\n1. c\n> d",
  "\\[x\\](https://evil.example)",
  "{{DATE(2026-01-01,SHORT)}}",
  "\u202e\u0000\ud800 名前 😀",
  "x".repeat(5_000),
  "&".repeat(5_000),
  "😀".repeat(5_000),
];

test.each(forms)("%s gets no mention, no link and no emphasis by a name, however long it is", async (form) => {
  const arbitrary = fc.sample(fc.string({ unit: "binary", minLength: 1, maxLength: 3_000 }), times(20, 300));
  for (const name of [...hostile, ...arbitrary])
    for (const kind of ["engine.down", "node.failing", "usage.share_reached"] as const) {
      expect([name, await send(form, kind, name), channels[form].refused]).toEqual([name, null, []]);
      if (name.length < 60 && kind === "engine.down" && !/[\p{Cc}\u2028\u2029]/u.test(name))
        expect(last(form).title).toContain(name.toWellFormed());
    }
});

test("a problem names neither the path nor the query of a URL that is a secret", async () => {
  const gone = slackChannel();
  gone.stop();
  const wrong = channels.slack.url.replace("sig=", "sig=no");
  for (const url of [gone.url, wrong, `http://127.0.0.1:1/${gone.secret}`, `https://127.0.0.1:1/${gone.secret}`]) {
    const { problem } = await deliver(due("slack", "notice.test", "x", url), withoutMail);
    expect(problem).toBeString();
    expect(problem).not.toContain("s3cret");
  }
  const closed = await deliver(due("slack", "notice.test", "x", gone.url), { ...withoutMail, allowPrivate: false });
  expect(closed.problem).toBe("its URL does not begin with https://");
  const { url, secret } = channels.slack;
  const { pathname, search } = new URL(url);
  for (const part of [url, pathname, pathname + search, `POST ${pathname}${search} HTTP/1.1`])
    expect(withoutUrl(`it cannot be reached: ${part} failed`, url)).not.toContain(secret);
});

test.each(forms)(
  "%s shows who asks for more, for what and why, and leads to the page on which to decide",
  async (form) => {
    await send(form, "limit.requested", "Ann");
    const { title, facts, link } = last(form);
    expect({ title, facts, link }).toEqual({
      title: "Ann of acme asks for more",
      facts: { Limit: "team, month", "Is now": "$10.00", Why: "Ann" },
      link: "https://console.example/limit-requests/lreq_1",
    });
  },
);

// Mutants of notices: what is sent, only once, and to whom.

import type { Mutant } from "./mutant.ts";

const queue = "src/stores/postgres/notices.ts";
const finding = "src/stores/postgres/notice-finding.ts";
const tests = "test/features/notices/queue.test.ts";
const mailTests = "test/features/notices/mail.test.ts";
const rule = "docs/notices.md";

export const notices: Mutant[] = [
  {
    name: "a node that has lost its lease says what became of a notice",
    file: queue,
    find: "where id = $1::uuid and attempts = $2`",
    replace: "where id = $1::uuid and attempts >= $2`",
    caughtBy: [`${tests} > postgres one that a node has claimed`],
    rule,
  },
  {
    name: "a claim is not kept for the one who has it",
    file: queue,
    find: "next_attempt_at = store_now() + make_interval(secs => $2)",
    replace: "next_attempt_at = store_now() + make_interval(secs => $2 * 0)",
    caughtBy: [`${tests} > postgres one that a node has claimed`],
    rule,
  },
  {
    name: "a share is told before it is reached",
    file: finding,
    find: "where w.used::numeric * 100 >= w.nanos::numeric * share",
    replace: "where w.used::numeric * 101 >= w.nanos::numeric * share",
    caughtBy: [`${tests} > postgres each share`],
    rule,
  },
  {
    name: "a team's share is that of any other team",
    file: finding,
    find: "nullif(s.subject_id, s.organization_id)",
    replace: "null",
    caughtBy: [`${tests} > postgres a team and a key`],
    rule,
  },
  {
    name: "what there is no room for is told first",
    file: finding,
    find: "order by r.used_share desc",
    replace: "order by r.used_share",
    caughtBy: [`${tests} > postgres of more than`],
    rule,
  },
  {
    name: "a webhook on this machine is asked",
    file: "src/features/notices/webhook.ts",
    find: 'inside4.addSubnet(network, bits, "ipv4");',
    replace: "void network;",
    caughtBy: [`${tests} > which addresses`],
    rule,
  },
  {
    name: "a webhook behind a translation to IPv4 is asked",
    file: "src/features/notices/webhook.ts",
    find: '  ["64:ff9b:1::", 48],\n',
    replace: "",
    caughtBy: [`${tests} > which addresses`],
    rule,
  },
  {
    name: "a name makes a mention in Slack",
    file: "src/features/notices/forms/slack.ts",
    find: '.replaceAll("<", "&lt;")',
    replace: "",
    caughtBy: ["test/features/notices/forms.test.ts"],
    rule: `${rule}, Slack and Teams`,
  },
  {
    name: "a name makes a link in Teams",
    file: "src/features/notices/forms/teams.ts",
    find: "escaped(cut(value, value_chars_max))",
    replace: "cut(value, value_chars_max)",
    caughtBy: ["test/features/notices/forms.test.ts"],
    rule: `${rule}, Slack and Teams`,
  },
  {
    name: "a problem repeats the URL of a channel",
    file: "src/features/notices/deliver.ts",
    find: 'text.replaceAll(part, "<url>")',
    replace: "text",
    caughtBy: ["test/features/notices/forms.test.ts > a problem"],
    rule: `${rule}, Slack and Teams`,
  },
  {
    name: "the URL of a channel is stored as it is",
    file: "src/stores/postgres/notice-destinations.ts",
    find: "address !== null && hasSecretAddress(form)",
    replace: "address !== null && !hasSecretAddress(form)",
    caughtBy: ["test/features/notices/secret-urls.test.ts"],
    rule: `${rule}, Slack and Teams`,
  },
  {
    name: "a moment of an engine is told",
    file: finding,
    find: "where not is_told and absent_since is null and since <=",
    replace: "where not is_told and absent_since is null and store_now() >=",
    caughtBy: ["test/features/notices/channels.test.ts > what lasts"],
    rule,
  },
  {
    name: "who reads the page of a mail's link unsubscribes",
    file: "src/admin/people/unsubscribe.ts",
    find: "subscriptions.findSubscription(secret)",
    replace: "subscriptions.subscribe(secret, false)",
    caughtBy: ["test/features/notices/mail-service.test.ts"],
    rule: `${rule}, Mail`,
  },
  {
    name: "who has unsubscribed is told",
    file: queue,
    find: "r.unsubscribed_at is null and not",
    replace: "not",
    caughtBy: [mailTests],
    rule: `${rule}, Mail`,
  },
  {
    name: "who has a mail gets it again with the others",
    file: queue,
    find: "and not t.address = any (n.settled)",
    replace: "",
    caughtBy: [mailTests],
    rule: `${rule}, Mail`,
  },
  {
    name: "a recipient who is refused for good is tried again",
    file: "src/features/notices/mail/smtp.ts",
    find: "isFinal: responseCode! >= 500",
    replace: "isFinal: responseCode! > 999",
    caughtBy: [mailTests],
    rule: `${rule}, Mail`,
  },
  {
    name: "a mail goes unencrypted where STARTTLS is missing",
    file: "src/features/notices/mail/smtp.ts",
    find: 'requireTLS: tls === "starttls"',
    replace: "requireTLS: false",
    caughtBy: [mailTests],
    rule: `${rule}, Mail`,
  },
];

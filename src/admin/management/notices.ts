/** Webhooks of organizations (docs/notices.md). */

import Type from "typebox";
import { maskedUrl } from "../../core/inference/masked.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { exampleOf } from "../../core/schema/example.ts";
import { Notices } from "../store/notices.ts";
import type { Organization } from "../store/organization.ts";
import { type Column, type Facts, flag } from "./command.ts";
import { fail } from "./error.ts";
import { organizationFlag } from "./organizations.ts";
import { partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { admins, formed, limitIn, oneOrganization, partOf, partOfIds, queryFlag, readers } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Notices");

const shares_default = [80, 100];
const keyExpiry_days_default = 14;
const secret_bytes = 32;

const SetNotices = Type.Object(
  {
    ...Notices.properties,
    secret: nullable(Type.String({ description: "A new secret, in plain text, this once. Null: it stays as it was." })),
  },
  { $id: "SetNotices" },
);

const example = exampleOf(Notices);

function noticeFacts(hook: Notices): Facts {
  return [
    ["organization", hook.organization],
    ["url", maskedUrl(hook.url)],
    ["shares", hook.shares.map((share) => `${share} %`).join(", ") || "none"],
    ["keys expire", hook.keyExpiryDays === 0 ? "no notice" : `notice ${hook.keyExpiryDays} days before`],
    ["waiting", String(hook.waiting)],
    ["problem", hook.problem ?? "none"],
  ];
}

const noticeColumns: Column<Notices>[] = [
  { head: "ORGANIZATION", cell: ({ organization }) => organization },
  { head: "URL", cell: ({ url }) => maskedUrl(url), breaks: true },
  { head: "WAITING", cell: ({ waiting }) => String(waiting) },
  { head: "PROBLEM", cell: ({ problem }) => problem ?? "", breaks: true },
];

export const noticeVerbs = [
  verb({
    name: "pageNotices",
    route: "GET /notices",
    summary: "List the webhooks of organizations",
    description: "Their settings, and whether the last notice arrived; never a secret.",
    roles: readers,
    faults: [],
    takes: Type.Object({
      ...partOfIds("org"),
      undelivered: queryFlag("True: only webhooks to which a notice of the last 100 days could not be delivered."),
    }),
    answers: partOf(Notices, "NoticesList"),
    example: { takes: {}, answer: { data: [example], nextCursor: null } },
    command: {
      words: "notice list",
      description: "list the webhooks of organizations",
      takes: { undelivered: flag("--undelivered", "only those to which a notice could not be delivered") },
      columns: noticeColumns,
      none: ({ undelivered }) =>
        undelivered
          ? "Every notice was delivered.\n"
          : "No organization has a webhook. To set one, run: sluice notice set ORG --url URL\n",
      parts: "all",
    },
    async act(context, input) {
      const found = await context.notices.pageNoticeHooks({
        limit: limitIn(input),
        after: input.cursor,
        organizationId: context.within ?? undefined,
        undelivered: input.undelivered,
      });
      return partFrom(found, found.items, ({ organizationId }) => organizationId);
    },
  }),
  verb({
    name: "findNotices",
    route: "GET /organizations/{organization}/notices",
    summary: "Show the webhook of an organization",
    description: "Its settings, and whether the last notice arrived; never the secret.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(oneOrganization),
    answers: Notices,
    example: { takes: { organization: "acme" }, answer: example },
    command: {
      words: "notice show",
      description: "show the webhook of an organization",
      takes: { organization: organizationFlag },
      says: noticeFacts,
    },
    async act({ notices, organizationOf }, input) {
      const organization = await organizationOf(input.organization);
      return (await notices.noticeHook(organization.id)) ?? noNotices(organization);
    },
  }),
  verb({
    name: "setNotices",
    route: "PUT /organizations/{organization}/notices",
    summary: "Set the webhook of an organization",
    description:
      "What is left out stays, or has its default in a new webhook. A new webhook gets a secret that signs its notices.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({
      ...oneOrganization,
      url: Type.Optional(
        formed(
          /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[!-~]{1,990}$/,
          "a URL that begins with https://",
          "Begins with `https://`.",
        ),
      ),
      shares: Type.Optional(
        Type.Array(Type.Integer({ minimum: 1, maximum: 100 }), {
          maxItems: 10,
          description: "Percentages of a window's limit at which to notify; 80 and 100 unless set.",
        }),
      ),
      key_expiry_days: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 90,
          description: "How long before a key expires; 14 unless set, 0: never.",
        }),
      ),
      new_secret: Type.Optional(Type.Boolean({ description: "Give it a new secret; the old one signs nothing more." })),
    }),
    answers: SetNotices,
    example: {
      takes: { organization: "acme", url: example.url, shares: [80, 100] },
      answer: { ...example, secret: `whsec_${"x".repeat(43)}` },
    },
    command: {
      words: "notice set",
      description: "set the webhook of an organization; what is left out stays",
      takes: {
        organization: organizationFlag,
        url: flag("--url <url>", "where to send notices; begins with https://"),
        shares: flag("--shares <list>", "percentages of a window at which to notify (default: 80,100)"),
        keyExpiryDays: flag("--key-expiry-days <n>", "days before a key expires; 0: never (default: 14)"),
        newSecret: flag("--new-secret", "give it a new secret"),
      },
      says: (set) => ({
        pieces: [
          { facts: noticeFacts(set) },
          set.secret === null ? "" : `The secret that signs notices, shown this once:\n${set.secret}\n`,
        ],
      }),
    },
    async act({ actor, notices, openOrganization, random }, input) {
      const organization = await openOrganization(input.organization);
      const before = await notices.noticeHook(organization.id);
      const { url, shares = before?.shares ?? shares_default } = input;
      const settings = {
        url: url === undefined ? (before?.url ?? fail("Specify the webhook's URL.")) : webhookUrl(url),
        shares: [...new Set(shares)].sort((one, other) => one - other),
        keyExpiryDays: input.keyExpiryDays ?? before?.keyExpiryDays ?? keyExpiry_days_default,
      };
      const secret = `whsec_${random(secret_bytes).toBase64({ alphabet: "base64url", omitPadding: true })}`;
      const renews = input.newSecret === true;
      const set = await notices.setNoticeHook(organization.id, settings, { secret, renews }, actor);
      return { ...set.hook, secret: set.isNewSecret ? secret : null };
    },
  }),
  verb({
    name: "removeNotices",
    route: "POST /organizations/{organization}/notices/remove",
    summary: "Remove the webhook of an organization",
    description: "Waiting notices are dropped.",
    roles: admins,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object(oneOrganization),
    answers: Notices,
    example: { takes: { organization: "acme" }, answer: example },
    command: {
      words: "notice remove",
      description: "remove the webhook of an organization; waiting notices are dropped",
      takes: { organization: organizationFlag },
      says: ({ organization }) => `Removed the webhook of ${organization}.\n`,
    },
    async act({ actor, notices, organizationOf }, input) {
      const organization = await organizationOf(input.organization);
      return (await notices.removeNoticeHook(organization.id, actor)) ?? noNotices(organization);
    },
  }),
] as const;

function noNotices({ slug }: Organization): never {
  return fail(`${slug} has no webhook. To set one, run: sluice notice set ${slug} --url URL`, "resource_not_found");
}

function webhookUrl(word: string): string {
  const url = URL.parse(word);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url.href;
  return fail(
    `'${parse.excerpt(word)}' is not a webhook's URL. Use one that begins with https:// and has no user name.`,
  );
}

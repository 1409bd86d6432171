/** Destinations of notices (docs/notices.md). */

import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { idOf } from "../../core/store/ids.ts";
import { passed, systemClock } from "../../core/time/clock.ts";
import { noticeForms } from "../../features/notices/store/notice.ts";
import { exampleOf } from "../store/example.ts";
import { NoticeDestination, tests_max } from "../store/notices.ts";
import type { Organization } from "../store/organization.ts";
import { flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { recipients_max, settingsOf } from "./notice-settings.ts";
import { destination_default, destinationColumns, destinationFacts, noDestination, whose } from "./notice-words.ts";
import { partFrom } from "./page.ts";
import { entry, formed, limitIn, managers, partOf, partOfIds, queryFlag, readers, slug, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Notices");

const secret_bytes = 32;
const wait_s_default = 15;
const poll_ms = 250;

const SetNotices = Type.Object(
  {
    ...NoticeDestination.properties,
    secret: nullable(
      Type.String({
        description: "A new secret, in plain text, this once. Null: it stays as it was, or the form has none.",
      }),
    ),
  },
  { $id: "SetNotices" },
);

const TestedNotices = Type.Object(
  {
    ...NoticeDestination.properties,
    is_delivered: Type.Boolean({ description: "False: not yet, or there was a problem." }),
    test_problem: nullable(Type.String({ description: "Why the test was not delivered. It is not tried again." })),
  },
  { $id: "TestedNotices" },
);

const example = exampleOf(NoticeDestination);

const ofOrganization = "Slug or ID. Without it: the only one of the caller, or of operators those of the fleet.";
const named = {
  name: words("The name of the destination."),
  organization: Type.Optional(words(ofOrganization)),
};
const namedInBody = { name: named.name, organization: Type.Optional(nullable(words(ofOrganization))) };
const typed = {
  organization: flag("[org]", "slug or ID of the organization; without it, notices of the fleet"),
  name: {
    ...flag("--name <name>", `name of the destination (default: ${destination_default})`),
    fallback: destination_default,
  },
};

export const noticeVerbs = [
  verb({
    name: "pageNotices",
    route: "GET /notices",
    summary: "List destinations of notices",
    description: "Their settings, and whether the last notice arrived; never a secret.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({
      ...partOfIds("dest"),
      organization: Type.Optional(words("Slug or ID.")),
      undelivered: queryFlag("True: only those to which a notice of the last 100 days could not be delivered."),
    }),
    answers: partOf(NoticeDestination, "NoticesList"),
    example: { takes: {}, answer: { data: [example], nextCursor: null } },
    command: {
      words: "notice list",
      description: "list where notices are sent: of all organizations, or of one",
      takes: {
        organization: flag("--org <org>", "slug or ID of the organization"),
        undelivered: flag("--undelivered", "only those to which a notice could not be delivered"),
      },
      columns: destinationColumns,
      none: ({ undelivered }) =>
        undelivered
          ? "Every notice was delivered.\n"
          : "No notices are sent anywhere. To set a webhook, run: sluice notice set ORG --url URL\n",
      parts: "all",
    },
    async act(context, input) {
      const found = await context.notices.pageDestinations({
        limit: limitIn(input),
        after: input.cursor,
        organizationId: await context.narrowedTo(input.organization),
        undelivered: input.undelivered,
      });
      return partFrom(found);
    },
  }),
  verb({
    name: "findNotices",
    route: "GET /notices/{name}",
    summary: "Show a destination of notices",
    description: "Its settings, and whether the last notice arrived; never a secret.",
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object(named),
    answers: NoticeDestination,
    example: { takes: { name: "webhook", organization: "acme" }, answer: example },
    command: {
      words: "notice show",
      description: "show where notices are sent, and whether they arrive",
      takes: typed,
      says: destinationFacts,
    },
    act: async (context, input) => (await found(context, input)).destination,
  }),
  verb({
    name: "setNotices",
    route: "PUT /notices/{name}",
    summary: "Set a destination of notices",
    description:
      "What is left out stays, or has its default in a new one. A new one of the form json gets a secret that signs its notices. The URL of Slack and Teams is a secret: it is stored encrypted and never shown, and needs SLUICE_SECRET_KEY. Mail goes to the addresses in `to`, and needs `smtp` in sluice.yaml.",
    roles: managers,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({
      ...namedInBody,
      name: slug("The name of the destination."),
      form: Type.Optional(oneOf([...noticeForms], { description: "How notices are written; json unless set." })),
      url: Type.Optional(
        formed(
          /^[Hh][Tt][Tt][Pp][Ss]?:\/\/[!-~]{1,1990}$/,
          "a URL that begins with https://",
          "Begins with `https://`.",
        ),
      ),
      to: Type.Optional(
        Type.Array(entry(), {
          minItems: 1,
          maxItems: recipients_max,
          description: `The addresses of the form mail, at most ${recipients_max}, in place of those before.`,
        }),
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
      takes: { name: "webhook", organization: "acme", url: "https://hooks.example.com/sluice", shares: [80, 100] },
      answer: { ...example, secret: `whsec_${"x".repeat(43)}` },
    },
    command: {
      words: "notice set",
      description: "set where notices are sent; what is left out stays",
      takes: {
        ...typed,
        form: { ...flag("--form <form>", "how notices are written (default: json)"), hasChoices: true },
        url: flag("--url <url>", "where to send notices; begins with https://"),
        to: flag("--to <list>", "addresses of mail, with commas between them (form mail)"),
        shares: flag("--shares <list>", "percentages of a window at which to notify (default: 80,100)"),
        keyExpiryDays: flag("--key-expiry-days <n>", "days before a key expires; 0: never (default: 14)"),
        newSecret: flag("--new-secret", "give it a new secret"),
      },
      says: (set) => ({
        pieces: [
          { facts: destinationFacts(set) },
          set.secret === null ? "" : `The secret that signs notices, shown this once:\n${set.secret}\n`,
        ],
      }),
    },
    async act(context, input) {
      const { actor, notices, newUuid, random } = context;
      const owner = await openOwner(context, input.organization);
      const service = { canSeal: notices.canSeal, domains: await context.mailDomains() };
      const secret = `whsec_${random(secret_bytes).toBase64({ alphabet: "base64url", omitPadding: true })}`;
      const made = { id: idOf(newUuid(), "dest_"), secret, renews: input.newSecret === true };
      const settings = (before: NoticeDestination | null) => settingsOf(input, before, service);
      const set = await notices.setDestination(owner?.id ?? null, input.name, settings, made, actor);
      return { ...set.destination, secret: set.isNewSecret ? secret : null };
    },
  }),
  verb({
    name: "testNotices",
    route: "POST /notices/{name}/test",
    summary: "Send a test",
    description: `A node sends it within some seconds, once. One at a time, and ${tests_max} an hour.`,
    roles: managers,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({
      ...namedInBody,
      wait_s: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 20,
          description: "How long to wait for its outcome; not at all unless set.",
        }),
      ),
    }),
    answers: TestedNotices,
    example: {
      takes: { name: "webhook", organization: "acme", wait_s: wait_s_default },
      answer: { ...example, isDelivered: true, testProblem: null },
    },
    command: {
      words: "notice test",
      description: "send a test, and say whether it arrived",
      takes: {
        ...typed,
        wait_s: {
          ...flag("--wait <seconds>", `how long to wait for its outcome (default: ${wait_s_default})`),
          fallback: wait_s_default,
        },
      },
      says: (tested) => (tested.isDelivered ? `A test arrived at ${tested.host}.\n` : ""),
      fails: ({ isDelivered, testProblem }) =>
        isDelivered
          ? null
          : testProblem === null
            ? "The test was not sent yet. A running node sends it: look whether one runs, and at sluice notice show."
            : `The test did not arrive: ${testProblem}`,
    },
    async act(context, input) {
      const { notices } = context;
      const { owner, destination } = await found(context, input);
      const test = await notices.addTest(destination, context.actor);
      if (test === "waiting") fail("The test before has no outcome yet. Look at sluice notice show.", "wrong_state");
      if (test === "too_many")
        fail(`${tests_max} tests were sent there within an hour. Try again later.`, "wrong_state");
      const clock = systemClock();
      const end_ms = clock.now_ms() + (input.wait_s ?? 0) * 1000;
      let outcome = await notices.outcome(test.id);
      while (outcome && !outcome.isDelivered && outcome.problem === null && clock.now_ms() < end_ms) {
        await passed(clock, poll_ms);
        outcome = await notices.outcome(test.id);
      }
      const now = await notices.findDestination(owner?.id ?? null, input.name);
      const { isDelivered = false, problem = null } = outcome ?? {};
      return { ...(now ?? destination), isDelivered, testProblem: problem };
    },
  }),
  verb({
    name: "removeNotices",
    route: "POST /notices/{name}/remove",
    summary: "Remove a destination of notices",
    description: "Waiting notices are dropped.",
    roles: managers,
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object(namedInBody),
    answers: NoticeDestination,
    example: { takes: { name: "webhook", organization: "acme" }, answer: example },
    command: {
      words: "notice remove",
      description: "send no more notices there; waiting ones are dropped",
      takes: typed,
      says: (removed) => `Removed the ${removed.name} of ${whose(removed)}.\n`,
    },
    async act(context, { organization, name }) {
      const owner = await ownerOf(context, organization);
      const removed = await context.notices.removeDestination(owner?.id ?? null, name, context.actor);
      return removed ?? noDestination(owner?.slug ?? null, name);
    },
  }),
] as const;

type NoticeOwner = Organization | null;

/**
 * The owner of a destination. Null: the operators, who get notices about the fleet. For an administrator of one
 * organization, the default is that organization.
 */
async function ownerOf(context: ManagementContext, organization: string | null | undefined): Promise<NoticeOwner> {
  const wanted = organization ?? context.within;
  return wanted === null ? null : context.organizationOf(wanted);
}

async function openOwner(context: ManagementContext, organization: string | null | undefined): Promise<NoticeOwner> {
  const owner = await ownerOf(context, organization);
  return owner && context.openOrganization(owner.id);
}

async function found(context: ManagementContext, of: { name: string; organization?: string | null | undefined }) {
  const owner = await ownerOf(context, of.organization);
  const destination = await context.notices.findDestination(owner?.id ?? null, of.name);
  return { owner, destination: destination ?? noDestination(owner?.slug ?? null, of.name) };
}

/**
 * Limit requests: people whom a limit stopped ask for more, and administrators decide (docs/limits.md, Asking for
 * more).
 */
import Type from "typebox";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { idOf } from "../../core/store/ids.ts";
import { exampleOf } from "../store/example.ts";
import {
  type LimitRequestAdministration,
  limitRequest_days,
  limitRequestStates,
  limitRequestsADay_max,
  openLimitRequests_max,
  type StoredLimitRequest,
} from "../store/limit-requests.ts";
import { limitNames } from "../store/shapes.ts";
import { type Flag, flag, required } from "./command.ts";
import { isClosed, type ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { askedLimit, askedValue, asksFor, decisionTold } from "./limit-asked.ts";
import { raisedBeside } from "./limit-change.ts";
import { LimitRequest, limitRequestColumns, limitRequestFacts, limitRequestShown } from "./limit-request-shape.ts";
import { limitInWords, sentAmount, sentIn } from "./limit-shape.ts";
import { requireAdmin } from "./limits.ts";
import { personActing } from "./own-limits.ts";
import { partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import {
  examples,
  formed,
  keepers,
  limitIn,
  managers,
  message,
  moment,
  oneOrganization,
  owners,
  partOf,
  partOfIds,
} from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Limits");

const requestId = (description: string) =>
  formed(/^req_[0-9a-f]{32}$/, "a request ID, which begins with 'req_'", description);
const one = {
  id: formed(/^lreq_[0-9a-f]{32}$/, "the ID of a limit request, which begins with 'lreq_'", "ID of the limit request."),
};
const oneFlag: Flag = flag("<id>", "ID of the limit request");
const exampleId = `lreq_${"0".repeat(31)}7`;
const faults = ["resource_not_found", "wrong_state"] as const;

const example = exampleOf(LimitRequest, {
  id: exampleId,
  organization: "acme",
  person: "Ann Example",
  subject: "person",
  subjectId: `per_${"0".repeat(31)}6`,
  name: "Ann Example",
  limit: "month",
  value: { amount: "50.000000000", currency: "USD" },
  asked: { amount: "200.000000000", currency: "USD" },
  message: "The migration of the billing service",
  expiresAt: new Date(examples.at.getTime() + limitRequest_days * 86_400_000),
});
const decided = { ...example, decidedAt: examples.at, decidedBy: "operator:lea" };

export const limitRequestVerbs = [
  verb({
    name: "requestLimit",
    route: "POST /limit-requests",
    summary: "Ask for more",
    description: `For a limit that one met: of oneself, the own team, organization or key. Name the request that was refused, or the limit. At most ${openLimitRequests_max} are open at a time, for ${limitRequest_days} days.`,
    roles: keepers,
    kind: "act",
    faults: [...faults, "already_exists"],
    takes: Type.Object({
      request: Type.Optional(requestId("The request that was refused: its limit is meant.")),
      limit: Type.Optional(
        oneOf([...limitNames], { description: "Else the limit.", "x-must-be": limitNames.join(", ") }),
      ),
      of: Type.Optional(
        oneOf(["person", "team", "organization", "key"], {
          description: "Whose limit: `person`, oneself, unless it says otherwise.",
          "x-must-be": "person, team, organization or key",
        }),
      ),
      key: Type.Optional(formed(/^key_[0-9a-f]{32}$/, "the ID of a key", "The own key, for its limit.")),
      models: Type.Optional(message(200)("The pattern of models of the limit; else all models.")),
      amount: Type.Optional(nullable(sentAmount("How much the limit should be."))),
      message: message(500)("Why, for those who decide."),
    }),
    answers: LimitRequest,
    example: { takes: { request: examples.request, amount: "200", message: example.message }, answer: example },
    command: {
      words: "limit request",
      description: "ask your administrators for more, where you are signed in (sluice login)",
      takes: {
        request: flag("--request <id>", "the request that was refused: its limit is meant"),
        limit: flag("--limit <name>", `else the limit: ${limitNames.join(", ")}`),
        of: flag("--of <whose>", "whose limit: person, team, organization or key (default: person)"),
        key: flag("--key <id>", "ID of your key, for its limit"),
        models: flag("--models <pattern>", "for these models, which have a limit of their own"),
        amount: flag("--amount <amount>", "how much the limit should be (default: they say how much)"),
        message: required("--message <text>", "why, in one line of 500 characters at most"),
      },
      says: limitRequestFacts,
      help: `
Examples:
  $ sluice limit request --request req_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --message "Release on Friday"
  $ sluice limit request --limit month --amount 200 --message "Release on Friday"`,
    },
    async act(context, input) {
      const personId = personActing(context.actor);
      if (personId === null || context.within === null)
        return fail("People ask for more, for themselves. An administrator increases limits at once.", "wrong_state");
      const currency = await context.currency();
      const limited = await askedLimit(context, { ...input, personId });
      const value = await askedValue(context, limited);
      const asked = input.amount == null ? null : sentIn(limited.limit, input.amount, currency);
      if (asked !== null && asked <= value)
        fail(`The limit is ${limitInWords(limited.limit, value, currency)} already. Ask for more than that.`);
      const wanted = {
        ...limited,
        id: idOf(context.newUuid(), "lreq_"),
        personId,
        value,
        asked,
        message: input.message,
        requestId: input.request ?? null,
      };
      const details = await asksFor(context, wanted, currency);
      const made = await context.limitRequests.openLimitRequest(wanted, { actor: context.actor, details });
      if (made === "too_many")
        fail(
          `You have asked ${openLimitRequests_max} times, and nobody has decided yet. Withdraw one first.`,
          "wrong_state",
        );
      if (made === "too_often")
        fail(`You have asked ${limitRequestsADay_max} times within a day. Ask again tomorrow.`, "wrong_state");
      if (made === "already") fail("You have asked for this limit, and nobody has decided yet.", "already_exists");
      return limitRequestShown(made as StoredLimitRequest, currency);
    },
  }),
  verb({
    name: "pageLimitRequests",
    route: "GET /limit-requests",
    summary: "List those who ask for more",
    description: "Newest first. A `member` sees their own.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object({
      organization: Type.Optional(oneOrganization.organization),
      person: Type.Optional(formed(/^per_[0-9a-f]{32}$/, "the ID of a person", "Only those of this person.")),
      state: Type.Optional(oneOf([...limitRequestStates], { "x-must-be": limitRequestStates.join(", ") })),
      ...partOfIds("lreq"),
    }),
    answers: partOf(LimitRequest, "LimitRequestList"),
    example: { takes: { organization: "acme", state: "open" }, answer: { data: [example], nextCursor: null } },
    command: {
      words: "limit requests",
      description: "list those who ask for more",
      takes: {
        organization: flag("--org <org>", "only those in this organization"),
        person: flag("--person <id>", "only those of this person"),
        state: flag("--state <state>", `only these: ${limitRequestStates.join(", ")}`),
      },
      columns: limitRequestColumns,
      none: "Nobody asks for more.\n",
      parts: "all",
    },
    async act(context, input) {
      const found = await context.limitRequests.pageLimitRequests({
        limit: limitIn(input),
        after: input.cursor,
        organizationId: await context.narrowedTo(input.organization),
        personId: context.person ?? input.person,
        state: input.state,
      });
      const currency = await context.currency();
      return partFrom(found, (item) => limitRequestShown(item, currency));
    },
  }),
  verb({
    name: "findLimitRequest",
    route: "GET /limit-requests/{id}",
    summary: "Show who asks for more",
    description: "What is asked, and what was decided.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object(one),
    answers: LimitRequest,
    example: { takes: { id: exampleId }, answer: example },
    async act(context, { id }) {
      return limitRequestShown(await inSight(context, id), await context.currency());
    },
  }),
  verb({
    name: "approveLimitRequest",
    route: "POST /limit-requests/{id}/approve",
    summary: "Approve a request for more",
    description:
      "Makes a temporary increase of the limit until an instant, by the rules of one: for the limit of an organization, the role admin. Nobody approves their own. Other temporary increases of the same limits keep their amounts until that instant. Who asked is told by mail, if the service sends any.",
    roles: managers,
    kind: "act",
    faults,
    takes: Type.Object({
      ...one,
      amount: Type.Optional(nullable(sentAmount("How much is in force until then; else what was asked for."))),
      until: moment("When the temporary increase ends: ISO 8601 with a time zone, or a date in UTC."),
    }),
    answers: LimitRequest,
    example: {
      takes: { id: exampleId, until: "2026-12-01" },
      answer: { ...decided, state: "approved", granted: example.asked, until: new Date("2026-12-01T00:00:00Z") },
    },
    command: {
      words: "limit approve",
      description: "approve a request for more: a temporary increase of the limit",
      takes: {
        id: oneFlag,
        until: required("--until <instant>", "when it ends: a date (UTC), or ISO 8601 with a time zone"),
        amount: flag("--amount <amount>", "how much is in force until then (default: what was asked for)"),
      },
      says: limitRequestFacts,
    },
    async act(context, { id, amount, until }) {
      const request = await inSight(context, id);
      if (request.personId === personActing(context.actor))
        fail("Nobody approves their own request. Ask another administrator.", "wrong_state");
      if (request.subject === "key" && (await context.keyFor(request.subjectId, "limit")).revokedAt)
        fail("The key of this request is revoked.", "wrong_state");
      if (request.subject === "organization") requireAdmin(context, { raise: null });
      const [currency, now_ms] = [await context.currency(), context.now_ms()];
      const granted = amount == null ? request.asked : sentIn(request.limit, amount, currency);
      if (granted === null) return fail("The request names no amount. Say how much is in force until then.");
      const answer = await context.limitRequests.approveLimitRequest(request, {
        actor: context.actor,
        granted,
        until,
        patch: (now, organization) =>
          raisedBeside({ ...request, granted, until }, now, organization, { currency, now_ms, models: [] }),
        told: await decisionTold(context, request, { state: "approved", granted, until, reason: null }),
      });
      if (answer === "closed") return isClosed(request.organization);
      if (answer === "gone") return fail(`The ${request.subject} of this request is gone.`, "wrong_state");
      const { subject, organizationId, subjectId } = request;
      if (answer !== "not_open") await context.announce(subject === "team" ? organizationId : subjectId);
      return decidedShown(context, id, answer);
    },
  }),
  verb({
    name: "declineLimitRequest",
    route: "POST /limit-requests/{id}/decline",
    summary: "Decline a request for more",
    description:
      "With a reason, which the person reads who asked: in the console, and by mail, if the service sends any.",
    roles: managers,
    kind: "act",
    faults,
    takes: Type.Object({ ...one, reason: message(500)("Why, for who asked.") }),
    answers: LimitRequest,
    example: {
      takes: { id: exampleId, reason: "The month has three days left." },
      answer: { ...decided, state: "declined", reason: "The month has three days left." },
    },
    command: {
      words: "limit decline",
      description: "decline a request for more, with a reason",
      takes: {
        id: oneFlag,
        reason: required("--reason <text>", "why, for who asked: one line of 500 characters at most"),
      },
      says: limitRequestFacts,
    },
    async act(context, { id, reason }) {
      const decision = { state: "declined", granted: null, until: null, reason } as const;
      const told = await decisionTold(context, await inSight(context, id), decision);
      return close(context, id, { state: "declined", reason, told });
    },
  }),
  verb({
    name: "withdrawLimitRequest",
    route: "POST /limit-requests/{id}/withdraw",
    summary: "Withdraw one's request for more",
    description: "Only who asked can withdraw it.",
    roles: keepers,
    kind: "act",
    faults,
    takes: Type.Object(one),
    answers: LimitRequest,
    example: {
      takes: { id: exampleId },
      answer: { ...decided, state: "withdrawn", decidedBy: `person:per_${"0".repeat(31)}6` },
    },
    async act(context, { id }) {
      const { personId } = await inSight(context, id);
      if (personId !== personActing(context.actor))
        fail("Only who asked can withdraw this request. Decline it instead.", "wrong_state");
      return close(context, id, { state: "withdrawn", reason: null, told: null });
    },
  }),
] as const;

async function inSight(context: ManagementContext, id: string): Promise<StoredLimitRequest> {
  const found = await context.limitRequests.findLimitRequest(id);
  const isOthers = context.person !== null && context.person !== found?.personId;
  return found && context.isInSight(found.organizationId) && !isOthers ? found : noLimitRequest(id);
}

async function close(
  context: ManagementContext,
  id: string,
  closing: Omit<Parameters<LimitRequestAdministration["closeLimitRequest"]>[1], "actor">,
): Promise<LimitRequest> {
  await inSight(context, id);
  const { actor, limitRequests } = context;
  return decidedShown(context, id, await limitRequests.closeLimitRequest(id, { actor, ...closing }));
}

async function decidedShown(
  context: ManagementContext,
  id: string,
  answer: StoredLimitRequest | "not_open" | "gone",
): Promise<LimitRequest> {
  if (answer === "gone") return noLimitRequest(id);
  if (answer !== "not_open") return limitRequestShown(answer, await context.currency());
  const { state } = await inSight(context, id);
  return fail(`This request is no longer open: it is ${state}.`, "wrong_state");
}

function noLimitRequest(id: string): never {
  return parse.missing("limit request", id, "", "limit requests");
}

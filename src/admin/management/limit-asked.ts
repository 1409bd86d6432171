/**
 * Finds the limit for which somebody asks for more: the limit that stopped a refused request, or the limit that the
 * input names.
 */
import type { Currency } from "../../core/inference/money.ts";
import { camelName, snakeName } from "../../core/schema/codec.ts";
import type { Budget } from "../../core/store/budget.ts";
import { raisedTo } from "../../core/store/rates.ts";
import type { AskedLimit, NewLimitRequest, StoredLimitRequest } from "../store/limit-requests.ts";
import type { LimitName } from "../store/shapes.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { amountOut } from "./limit-shape.ts";
import { membershipIn, personOf } from "./people.ts";

interface Asking {
  /** The person who asks, in the one organization that the context sees. */
  personId: string;
  request?: string | undefined;
  limit?: LimitName | undefined;
  of?: AskedLimit["subject"] | undefined;
  key?: string | undefined;
  models?: string | undefined;
}

export async function askedLimit(context: ManagementContext, asking: Asking): Promise<AskedLimit> {
  const { request, limit, of = "person", key, models } = asking;
  if ((request === undefined) === (limit === undefined))
    fail("Name the request that was refused, or the limit: one of them.");
  if (request !== undefined) return limitMet(context, asking.personId, request);
  const subjectId = await subjectOf(context, asking.personId, { subject: of, keyId: key });
  return {
    subject: of,
    subjectId,
    organizationId: context.within!,
    models: models ?? "",
    limit: camelName(limit!) as keyof Budget,
  };
}

async function limitMet(context: ManagementContext, personId: string, requestId: string): Promise<AskedLimit> {
  const refusal = await context.refused.find(requestId);
  if (!refusal || !context.isInSight(refusal.organizationId) || refusal.personId !== personId)
    return fail(
      `There is no refused request ${requestId} of yours. Refusals are kept for 30 days, at most ten a second of an organization; name the limit instead.`,
      "resource_not_found",
    );
  const { limit: met, organizationId, keyId } = refusal;
  if (!met) return fail("That request met no limit, so more would not have helped.", "wrong_state");
  if (met.name === "extra")
    return fail(
      "That request met the limit of extra usage, which is not raised for a while. Ask an administrator of the service.",
      "wrong_state",
    );
  const subjectId = await subjectOf(context, personId, { subject: met.limitedBy, keyId });
  const limit = camelName(met.name) as keyof Budget;
  return { subject: met.limitedBy, subjectId, organizationId, models: met.models ?? "", limit };
}

/**
 * The ID of the key, person, team or organization whose limit is meant. `keyId`: the key whose request met the limit,
 * or the key that the input names.
 */
async function subjectOf(
  context: ManagementContext,
  personId: string,
  { subject, keyId }: { subject: AskedLimit["subject"]; keyId: string | undefined },
): Promise<string> {
  if (subject === "person") return personId;
  if (subject === "organization") return context.within!;
  const key = keyId === undefined ? null : await context.keyOf(keyId);
  if (key && key.personId !== personId) fail("That key is not yours.", "resource_not_found");
  if (subject === "key") {
    if (!key) return fail("Name the key, by its ID.");
    return (await context.keyFor(key.id, "limit")).id;
  }
  // An ordinary key counts in its own team. The keys of sign-ins and identity tokens count in the team of the person's
  // membership.
  const team = key?.kind === "key" ? key.team : membershipIn(context, await personOf(context, personId))?.team;
  return team?.id ?? fail("You are in no team.", "wrong_state");
}

/** The current value of the limit. Refuses if there is no such limit now. */
export async function askedValue(context: ManagementContext, asked: AskedLimit): Promise<number> {
  const { subject, subjectId: id, organizationId, models, limit } = asked;
  const found = await context.administration.limitsOf({ subject, id, organizationId });
  const raise = found?.raises.find((one) => one.models === models)?.limits[limit];
  const base = (models === "" ? found?.inForce : found?.models.get(models))?.[limit] || null;
  return (
    raisedTo(base, raise) ??
    fail(`The ${subject} has no limit '${snakeName(limit)}'${models && ` for ${models}`} now.`, "wrong_state")
  );
}

/** The data of the notice that tells administrators about the request for more. */
export async function asksFor(
  context: ManagementContext,
  wanted: NewLimitRequest,
  currency: Currency,
): Promise<Record<string, unknown>> {
  const { id, personId, subject, subjectId, models, limit, value, asked, message } = wanted;
  const { name, email } = await personOf(context, personId);
  const origin = (await context.configuration?.())?.identity?.consoleUrl ?? null;
  return {
    limit_request_id: id,
    person_id: personId,
    person: name ?? email,
    subject,
    subject_id: subjectId,
    models: models || null,
    limit: snakeName(limit),
    value: amountOut(limit, value, currency),
    asked: asked === null ? null : amountOut(limit, asked, currency),
    message,
    console_url: origin && `${origin}/limit-requests/${id}`,
  };
}

type Decision = Pick<StoredLimitRequest, "granted" | "until" | "reason"> & { state: "approved" | "declined" };

/** The data of the mail that reports the decision to the person who asked; null: the service sends no mail. */
export async function decisionTold(
  context: ManagementContext,
  { id, organization, subject, models, limit, value }: StoredLimitRequest,
  { state, granted, until, reason }: Decision,
): Promise<Record<string, unknown> | null> {
  if ((await context.mailDomains()) === null) return null;
  const currency = await context.currency();
  return {
    limit_request_id: id,
    organization,
    subject,
    models: models || null,
    limit: snakeName(limit),
    value: amountOut(limit, value, currency),
    state,
    granted: granted === null ? null : amountOut(limit, granted, currency),
    until: until?.toISOString() ?? null,
    reason,
  };
}

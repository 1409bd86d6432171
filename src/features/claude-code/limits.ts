/**
 * Reports limits to Claude Code when it is signed in to this service: in headers, from which it makes its notices, and
 * in the error by which it recognizes the end of a window. Claude Code shows the values of these headers and computes
 * nothing from them, so they also work for this service's windows, which are fixed.
 */
import { credentialOf, isToken } from "../../core/auth/credential.ts";
import type { Fault } from "../../core/inference/fault.ts";
import type { MessagesError } from "../../core/protocol/anthropic-messages/contract.ts";
import { encodeFault } from "../../core/protocol/anthropic-messages/fault.ts";
import type { Granted, WindowKind } from "../../core/store/ledger.ts";
import { capsOf, fullest, periods, shareOf } from "./caps.ts";

const family = "anthropic-ratelimit-unified";
const thresholds = [0.95, 0.75] as const;

/** Whether the caller has the access token of a sign-in, and not a key. The credential was checked before. */
export function isSignedIn(headers: Headers): boolean {
  try {
    return isToken("slt_", credentialOf(headers));
  } catch {
    return false;
  }
}

/**
 * The headers about the limit of which the largest share is used. Without a limit there are no headers, and Claude Code
 * shows that there is no limit.
 */
export function standingHeaders({ windows, subjects }: Pick<Granted, "windows" | "subjects">): Record<string, string> {
  const cap = fullest(capsOf(windows, subjects));
  if (!cap) return {};
  // An admitted request has room, so its headers never show a full limit, whatever other requests hold.
  const share = Math.min(0.99, Math.floor(shareOf(cap) * 100) / 100);
  const passed = thresholds.find((one) => share >= one);
  const status = passed === undefined ? "allowed" : "allowed_warning";
  return {
    [`${family}-status`]: status,
    [`${family}-representative-claim`]: "overage",
    [`${family}-overage-status`]: status,
    [`${family}-overage-utilization`]: share.toFixed(2),
    ...(passed === undefined ? {} : { [`${family}-overage-surpassed-threshold`]: String(passed) }),
    [`${family}-reset`]: String(cap.resetsAt_s),
    [`${family}-overage-reset`]: String(cap.resetsAt_s),
  };
}

/**
 * The headers of a refusal. Without the status among them, Claude Code would take the refusal for a passing shortage,
 * and retry for ever.
 */
export function refusalHeaders({ code, details }: Fault, { headers }: Request): Record<string, string> {
  if (code !== "usage_limit_reached") return {};
  const status = { [`${family}-status`]: "rejected" };
  const { resets_at: resetsAt, window } = details.body ?? {};
  // If a request needs more than the full size of a limit, no reset makes room for it.
  if (resetsAt === undefined) return status;
  const reset = { ...status, [`${family}-reset`]: String(resetsAt) };
  if (!isSignedIn(headers)) return reset;
  const period = periods[window as WindowKind];
  // The claim and the overage status are left out, so that Claude Code shows this service's message and not one of its
  // own.
  return {
    ...reset,
    [`${family}-overage-reset`]: String(resetsAt),
    [`${family}-overage-utilization`]: "1",
    [`${family}-overage-surpassed-threshold`]: "1",
    ...(period === undefined ? {} : { [`${family}-overage-period`]: period }),
    [`${family}-overage-disabled-reason`]: "org_spend_cap_reached",
  };
}

/**
 * The body of a fault for a client that is signed in. If a window is used up, the message is one sentence, because
 * Claude Code shows only one.
 */
export function messagesFault(fault: Fault, requestId: string, { headers }: Request): MessagesError {
  const body = encodeFault(fault, requestId);
  if (fault.code !== "usage_limit_reached" || !isSignedIn(headers)) return body;
  const { console_url: url } = fault.details.body ?? {};
  const sentence = inOneSentence(body.error.message);
  const message = url === undefined ? sentence : `${sentence.replace(/[.]$/, "")}; you can ask for more at ${url}`;
  return { ...body, error: { ...body.error, type: "billing_error", message } };
}

function inOneSentence(message: string): string {
  return message.replaceAll(/\. ([A-Z])/g, (_, first: string) => `; ${first.toLowerCase()}`);
}

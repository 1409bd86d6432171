/** The notes of a call for its log line, and the texts of its caller, shortened and cleaned. Pure. */

import { masked } from "../inference/masked.ts";
import type { Usage } from "../inference/usage.ts";
import type { BillingSource } from "../store/ledger.ts";
import type { Tried } from "../usage/record.ts";

/** Facts about a request for its log line. They never hold content or a secret. */
export interface CallNotes {
  organization?: string;
  key?: string;
  /** The operator who called the management interface with a token. */
  operator?: string;
  /** The person who called the management interface from the console. */
  person?: string;
  model?: string;
  stream?: boolean;
  /** The source that pays for an admitted inference request: the plan, or extra usage. */
  source?: BillingSource;
  outcome?: string;
  usage?: Usage;
  firstPart_ms?: number;
  /** The engine that answered, or that was asked last. */
  upstream?: string;
  replica?: string;
  attempts?: readonly Tried[];
  queued_ms?: number;
  code?: string;
  cause?: unknown;
}

const agent_chars_max = 200;
const id_chars_max = 128;

/**
 * The texts that a caller chooses. In the log they are shortened, and have no control characters and no secrets of this
 * service.
 */
type CallersWords = Partial<Record<"user_agent" | "x_request_id" | "x_client_request_id", string | undefined>>;

export function callersWords(headers: { get(name: string): string | null }): CallersWords {
  return {
    user_agent: headerText(headers.get("user-agent"), agent_chars_max),
    x_request_id: headerText(headers.get("x-request-id"), id_chars_max),
    x_client_request_id: headerText(headers.get("x-client-request-id"), id_chars_max),
  };
}

function headerText(text: string | null, chars_max: number): string | undefined {
  return text ? cleaned(text, chars_max) : undefined;
}

const unprintable = /[^\x20-\x7e]/g;

/**
 * Cleans and shortens the text of a caller. Secrets are removed before the text is shortened: half of a secret would
 * not be recognised, and would still reveal much.
 */
export function cleaned(text: string, chars_max: number): string {
  return masked(text.slice(0, chars_max * 4))
    .slice(0, chars_max)
    .replace(unprintable, "?");
}

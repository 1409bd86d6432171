/** Sends the requests of the session in this tab to the server. */

import { signal } from "@preact/signals";
import { keptOrganization } from "./kept.ts";
import { Refusal, request, type Sent } from "./request.ts";
import { keepSecret, secret } from "./secret.ts";

/** The organization in which the person currently acts, for people with memberships in several. */
export const actsIn = signal<string | null>(keptOrganization.get());

/** Why the session has ended; the sign-in page then replaces all others. Null: it has not ended. */
export const sessionEnded = signal<string | null>(null);

/** Sends a request for this session. Throws Refusal. */
export async function send(sent: Sent, organization = actsIn.value): Promise<Response> {
  try {
    return await request(sent, { secret: secret(), organization });
  } catch (failure) {
    if (failure instanceof Refusal && failure.status === 401 && secret() !== null) {
      keepSecret(null);
      sessionEnded.value = failure.message;
    }
    throw failure;
  }
}

/** Sends a request for this session, and reads the JSON of its answer. Throws Refusal. */
export async function json<Answer>(sent: Sent, organization?: string): Promise<Answer> {
  return (await (await send(sent, organization)).json()) as Answer;
}

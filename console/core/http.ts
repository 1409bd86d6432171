/** Requests of the session in this tab. */

import { signal } from "@preact/signals";
import { keptOrganization } from "./kept.ts";
import { Refusal, request, type Sent } from "./request.ts";
import { keepSecret, secret } from "./secret.ts";

/** The organization in which a person who is in several acts. */
export const actsIn = signal<string | null>(keptOrganization.get());

/** Reports that the session has ended; the page of sign-in then stands in the place of all others. */
export const sessionEnded = signal<string | null>(null);

/** Throws Refusal. */
export async function send(sent: Sent): Promise<Response> {
  try {
    return await request(sent, { secret: secret(), organization: actsIn.value });
  } catch (failure) {
    if (failure instanceof Refusal && failure.status === 401 && secret() !== null) {
      keepSecret(null);
      sessionEnded.value = failure.message;
    }
    throw failure;
  }
}

/** Throws Refusal. */
export async function json<Answer>(sent: Sent): Promise<Answer> {
  return (await (await send(sent)).json()) as Answer;
}

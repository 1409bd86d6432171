/** Requests to this server, in JSON, with the secret of the session. */

import { signal } from "@preact/signals";
import { keepSecret, secret } from "./secret.ts";

/** The organization in which a person who is in several acts. */
export const actsIn = signal<string | null>(sessionStorage.getItem("sluice-organization"));

/** A refusal, in the words of the server. */
export class Refusal extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    readonly requestId: string | null,
  ) {
    super(message);
  }
}

/** Reports that the session has ended; the page of sign-in then stands in the place of all others. */
export const sessionEnded = signal<string | null>(null);

export interface Sent {
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
}

export async function send({ method, path, body, headers = {}, signal }: Sent): Promise<Response> {
  const own: Record<string, string> = { accept: "application/json", ...headers };
  const known = secret();
  if (known !== null) own["x-sluice-console"] = known;
  if (actsIn.value !== null) own["x-sluice-organization"] = actsIn.value;
  if (body !== undefined) own["content-type"] = "application/json";
  const options = { method: method.toUpperCase(), headers: own, ...(signal ? { signal } : {}) };
  const response = await fetch(path, {
    ...options,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  }).catch((failure) => {
    if (signal?.aborted) throw failure;
    throw new Refusal("The server does not answer. Is it running?", 0, "unreachable", null);
  });
  if (response.ok) return response;
  throw await refusalOf(response);
}

export async function json<Answer>(sent: Sent): Promise<Answer> {
  return (await (await send(sent)).json()) as Answer;
}

async function refusalOf(response: Response): Promise<Refusal> {
  const { error } = await response.json().catch(() => ({ error: null }));
  const message = error?.message ?? `The server answered with status ${response.status}.`;
  if (response.status === 401 && secret() !== null) {
    keepSecret(null);
    sessionEnded.value = message;
  }
  return new Refusal(message, response.status, error?.code ?? "unknown", error?.request_id ?? null);
}

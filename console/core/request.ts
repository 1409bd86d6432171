/**
 * Sends a request to this server, in JSON, with the secret of the session. It needs no other code of the pages, because
 * the script in the document sends the first request before that code has loaded.
 */

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

export interface Sent {
  method: string;
  path: string;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal | undefined;
  /** The priority in the browser's queue. Absent: the normal one, because the page shows little without the answer. */
  priority?: "low" | undefined;
}

interface Sender {
  secret: string | null;
  /** The organization in which the sender acts. */
  organization: string | null;
}

/** Sends a request. Throws Refusal. */
export async function request(
  { method, path, body, headers = {}, signal, priority }: Sent,
  { secret, organization }: Sender,
): Promise<Response> {
  const own: Record<string, string> = { accept: "application/json", ...headers };
  if (secret !== null) own["x-sluice-console"] = secret;
  if (organization !== null) own["x-sluice-organization"] = organization;
  if (body !== undefined) own["content-type"] = "application/json";
  const response = await fetch(path, {
    method: method.toUpperCase(),
    headers: own,
    ...(signal && { signal }),
    ...(priority && { priority }),
    ...(body !== undefined && { body: JSON.stringify(body) }),
  }).catch((failure) => {
    if (signal?.aborted && signal.reason.name !== "TimeoutError") throw failure;
    throw new Refusal("The server does not answer. Is it running?", 0, "unreachable", null);
  });
  if (response.ok) return response;
  throw await refusalOf(response);
}

async function refusalOf(response: Response): Promise<Refusal> {
  const body = (await response.json().catch(() => null)) as { error?: FaultBody } | null;
  return refusalFrom(body?.error ?? null, response.status);
}

interface FaultBody {
  message?: string;
  code?: string;
  request_id?: string;
}

/** The refusal in an error body. `status` is that of the response, or 0 if the error came as an event of a stream. */
export function refusalFrom(error: FaultBody | null, status: number): Refusal {
  const message = error?.message ?? `The server answered with status ${status}.`;
  return new Refusal(message, status, error?.code ?? "unknown", error?.request_id ?? null);
}

// Helpers of the tests of OpenAI's SDK, for Chat Completions and for Responses.

import { expect } from "bun:test";
import OpenAI, { APIError } from "openai";
import type { Service } from "../harness/engine.ts";
import { until } from "../harness/until.ts";

type Fetch = NonNullable<NonNullable<ConstructorParameters<typeof OpenAI>[0]>["fetch"]>;

/** A fetch for an SDK that checks every response against the contract. */
export function checkedFetch({ url, fetch }: Pick<Service, "url" | "fetch">): Fetch {
  return (address, init) => fetch(String(address).slice(url.length), init);
}

/** A client of OpenAI's SDK. Every response to it is checked against the contract. */
export function checkedClient(service: Pick<Service, "url" | "fetch" | "key">, apiKey = service.key, maxRetries = 0) {
  return new OpenAI({ baseURL: `${service.url}/v1`, apiKey, maxRetries, fetch: checkedFetch(service) });
}

/** The reason with which a promise rejects; undefined if it resolves. */
export const thrown = (promise: PromiseLike<unknown>): Promise<unknown> =>
  new Promise((resolve) => promise.then(() => resolve(undefined), resolve));

/**
 * The error of OpenAI's SDK with which a promise rejects. Checks that the error and its body have the same request ID.
 */
export async function errorOf(promise: PromiseLike<unknown>): Promise<APIError> {
  const error = await thrown(promise);
  if (!(error instanceof APIError)) throw error ?? new Error("it was not refused");
  expect(error.requestID).toMatch(/^req_[0-9a-f]{32}$/);
  expect(error.error).toMatchObject({ request_id: error.requestID });
  return error;
}

/** A refusal: the request that provokes it, the class of its error, and members of the error. */
export type Refusal = [
  name: string,
  provoke: () => PromiseLike<unknown>,
  kind: abstract new (...parts: never[]) => APIError,
  members: object,
];

export async function expectRefusal(provoke: Refusal[1], kind: Refusal[2], members: object): Promise<void> {
  const error = await errorOf(provoke());
  expect(error).toBeInstanceOf(kind);
  expect(error).toMatchObject(members);
}

/**
 * Closes the connection in the middle of a response. Uses the SDK's own fetch, so that no test code is between the SDK
 * and the socket. Checks that the service closes its request to the engine within a second. Returns the result of
 * `leave`.
 */
export async function leaving<Result>(
  { url, key, engine }: Service,
  leave: (client: OpenAI) => Promise<Result>,
): Promise<Result> {
  const before = engine.counts.clients_left;
  const result = await leave(new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 }));
  const isLeft = () => engine.counts.clients_left > before && engine.counts.active === 0;
  await until(isLeft, 1000, "the engine to be let go");
  return result;
}

/** Aborts an unstreamed request once the engine has received it. */
export async function leavingBySignal(
  service: Service,
  ask: (client: OpenAI, how: { signal: AbortSignal }) => PromiseLike<unknown>,
): Promise<unknown> {
  return leaving(service, async (client) => {
    const abort = new AbortController();
    const pending = thrown(ask(client, { signal: abort.signal }));
    await until(() => service.engine.counts.active > 0, 5000, "the engine to be asked");
    abort.abort();
    return pending;
  });
}

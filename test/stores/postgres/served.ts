// Sends requests to a node on a test's database.

import { expect } from "bun:test";
import type { Sluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

/** Sends a request for the node's first model, with the node's own key unless another one is given. */
export async function chat(sluice: Sluice, key = sluice.key): Promise<Response> {
  const { data } = (await (await sluice.fetch("/v1/models", { key })).json()) as { data: { id: string }[] };
  const body = { model: data[0]!.id, messages: [{ role: "user", content: "Hello" }] };
  return sluice.post("/v1/chat/completions", body, { key });
}

/** Sends a request, and returns its ID when its receipt says that it has ended. */
export async function served(sluice: Sluice, key = sluice.key): Promise<string> {
  const response = await chat(sluice, key);
  expect(response.status).toBe(200);
  const id = response.headers.get("x-service-request-id")!;
  await until(async () => (await endOf(sluice, id, key)) !== null, 20_000, "the receipt");
  return id;
}

/** The end time in a request's receipt; null if the request has not ended, or there is no receipt. */
export async function endOf(sluice: Sluice, id: string, key = sluice.key): Promise<string | null> {
  const response = await sluice.fetch(`/v1/service/requests/${id}`, { key });
  return ((await response.json()) as { ended_at?: string | null }).ended_at ?? null;
}

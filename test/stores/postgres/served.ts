// Requests that a node on a test's database serves.

import { expect } from "bun:test";
import type { Sluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

/** Asks the node's first model, with the node's own key if no other is given. */
export async function chat(sluice: Sluice, key = sluice.key): Promise<Response> {
  const { data } = (await (await sluice.fetch("/v1/models", { key })).json()) as { data: { id: string }[] };
  const body = { model: data[0]!.id, messages: [{ role: "user", content: "Hello" }] };
  return sluice.post("/v1/chat/completions", body, { key });
}

/** Serves a request, and returns its ID once its receipt says that it has ended. */
export async function served(sluice: Sluice, key = sluice.key): Promise<string> {
  const response = await chat(sluice, key);
  expect(response.status).toBe(200);
  const id = response.headers.get("x-service-request-id")!;
  await until(async () => (await endOf(sluice, id, key)) !== null, 20_000, "the receipt");
  return id;
}

/** When a request ended, by its receipt; null if it has not, or there is no receipt. */
export async function endOf(sluice: Sluice, id: string, key = sluice.key): Promise<string | null> {
  const response = await sluice.fetch(`/v1/service/requests/${id}`, { key });
  return ((await response.json()) as { ended_at?: string | null }).ended_at ?? null;
}

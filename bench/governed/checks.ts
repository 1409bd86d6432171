// Checks that each gateway really enforces its limits, because a gateway that refuses nothing would be the fastest.

import { answer } from "./engine.ts";
import type { Gateway, Key, KeyRequest, Running } from "./gateway.ts";
import type { Clients } from "./load.ts";

/**
 * The limits of the keys to check: the output tokens of `room` responses, and on the next line `rate` requests a
 * minute.
 */
const room = 5;
const rate = 10;
export const unlimited = { output_tokens: 1_000_000_000, requests_per_minute: 1_000_000 };

export const checkRequests: readonly KeyRequest[] = [
  { name: "check-budget", limits: { ...unlimited, output_tokens: room * answer.output_tokens } },
  { name: "check-race", limits: { ...unlimited, output_tokens: room * answer.output_tokens } },
  { name: "check-rate", limits: { ...unlimited, requests_per_minute: rate } },
];

/** The result of each check, as a sentence for the table. */
export type Checked = Record<"key" | "budget" | "race" | "rate", string>;

/** Runs the checks. `keys` are the keys that the gateway created for `checkRequests`, in the same order. */
export async function checked({ has }: Gateway, clients: Clients, keys: readonly Key[]): Promise<Checked> {
  const [budget, race, rated] = keys as [Key, Key, Key];
  const refused = await Promise.all([clients.ask(null), clients.ask("sk-of-nobody")]);
  const isRefused = refused.every(({ status }) => status === 401 || status === 403);
  const inTurn = async ({ secret }: Key, count: number) => {
    const statuses: number[] = [];
    for (let asked = 0; asked < count; asked++) statuses.push((await clients.ask(secret)).status);
    return statuses;
  };
  return {
    key: isRefused ? "refused" : `NOT refused: ${refused.map(({ status }) => status).join(", ")}`,
    budget: has.budget ? said(await inTurn(budget, 4 * room), room) : "has none",
    race: has.budget ? said(await atOnce(clients, race, 10 * room), room) : "has none",
    rate: has.rate ? said(await inTurn(rated, 3 * rate), rate) : "has none by key",
  };
}

async function atOnce(clients: Clients, { secret }: Key, count: number): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => clients.ask(secret)));
  return answers.map(({ status }) => status);
}

function said(statuses: readonly number[], wanted: number): string {
  const admitted = statuses.filter((status) => status === 200).length;
  const others = [...new Set(statuses.filter((status) => status !== 200))].join(", ");
  return `${admitted} of ${statuses.length} (room for ${wanted})${others ? `, others ${others}` : ""}`;
}

/**
 * Waits until the gateway's usage records include all responses to these keys. Returns the number of output tokens that
 * the records should have, and the number that they have.
 */
export async function booked(running: Running, keys: readonly Key[], answers: number, most_ms: number) {
  const wanted = answers * answer.output_tokens;
  const began_ms = Date.now();
  let usage = await running.usage(keys);
  while (usage && usage.output_tokens < wanted && Date.now() - began_ms < most_ms) {
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    usage = await running.usage(keys);
  }
  return { wanted, found: usage?.output_tokens ?? null };
}

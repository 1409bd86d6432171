// A client of background responses: it starts a response, with or without an idempotency key, polls random nodes until
// the response has ended, and may cancel it. A client with a key may be cut off before it has the response's ID; then
// it repeats the request with the same key.

import { tokens } from "../../src/features/simulator/text.ts";
import { until } from "../harness/until.ts";
import type { Chance } from "./chance.ts";
import { model, type Node, post } from "./rig.ts";

/** The state of a response as a node returned it. */
export interface Told {
  node: string;
  status: string;
  error: string | null;
  outputTokens: number | null;
  /** The number of tokens in the response's text. */
  textTokens: number;
  at_ms: number;
}

export interface BackgroundClient {
  marker: string;
  stream: boolean;
  hasKey: boolean;
  wanted: number;
  /**
   * The IDs of the client's responses, in order. With a key there may be several, because after a failed response the
   * same key starts another one.
   */
  ids: string[];
  /** The states that nodes returned of the last response. */
  told: Told[];
  isCancelled: boolean;
  /** Whether the client has given up, because its request was refused, or was cut off and had no key. */
  hasGivenUp: boolean;
  began_ms: number;
  ended_ms: number;
}

export const tokensPerSecond = 100;
const patience_ms = 90_000;
const retry_ms = 100;
const begin_ms_max = 10_000;
/** How often the client reads an ended response again, to check that it does not change any more. */
const looks_after_end = 3;

interface Round {
  nodes: readonly Node[];
  key: string;
  marker: string;
  chance: Chance;
}

export async function backgroundRound(round: Round): Promise<BackgroundClient> {
  const { nodes, marker, chance } = round;
  const client: BackgroundClient = {
    ...{ marker, stream: chance.next() < 0.5, hasKey: chance.next() < 0.5, wanted: 20 + chance.below(200) },
    ...{ ids: [], told: [], isCancelled: false, hasGivenUp: false },
    ...{ began_ms: Date.now(), ended_ms: Number.POSITIVE_INFINITY },
  };
  const cancelsAfter_ms = chance.next() < 0.2 ? chance.below(1_500) : Number.POSITIVE_INFINITY;
  const running = () => nodes.filter((node) => node.running);
  await until(() => running().length > 0, patience_ms, "a node that runs");
  const since_ms = performance.now();
  const has = (passed_ms: number) => performance.now() - since_ms >= passed_ms;
  while (client.ids.length === 0 && !client.hasGivenUp) await begin(round, client, running(), has(begin_ms_max));
  let looks = 0;
  while (!client.hasGivenUp && looks < looks_after_end && !has(patience_ms)) {
    const node = running().length > 0 ? chance.pick(running()) : null;
    if (node && !client.isCancelled && has(cancelsAfter_ms)) {
      client.isCancelled = true;
      await tell(node, round, client, "/cancel");
    }
    if (node) await tell(node, round, client);
    if (isOver(client.told.at(-1))) looks += 1;
    await Bun.sleep(retry_ms);
  }
  client.ended_ms = Date.now();
  return client;
}

export function isOver(told: Told | undefined): boolean {
  return told !== undefined && told.status !== "queued" && told.status !== "in_progress";
}

async function begin(
  { key, marker, chance }: Round,
  client: BackgroundClient,
  nodes: readonly Node[],
  isLast: boolean,
): Promise<void> {
  const { stream, hasKey, wanted } = client;
  client.hasGivenUp = isLast;
  if (nodes.length === 0) return void (await Bun.sleep(retry_ms));
  const leaving = new AbortController();
  const timer = setTimeout(() => leaving.abort(), hasKey && chance.next() < 0.3 ? chance.below(60) : begin_ms_max);
  try {
    const input = `[simulator: tps=${tokensPerSecond} tokens=${wanted}] ${marker}`;
    const headers = { connection: "close", ...(hasKey && { "idempotency-key": marker }) };
    const how = { headers, signal: leaving.signal };
    const body = { model, stream, background: true, input };
    const response = await post(chance.pick(nodes), "/v1/responses", key, body, how);
    let text = "";
    for await (const chunk of response.body!) {
      text += Buffer.from(chunk).toString("latin1");
      if (response.status === 200 && idWords.test(text)) break;
    }
    const id = idWords.exec(text)?.[1];
    if (response.status === 200 && id) client.ids.push(id);
    else if (response.status !== 503) client.hasGivenUp = true;
  } catch {
    // The request was cut off, or its node is down. Without an idempotency key, the client cannot repeat it.
    client.hasGivenUp ||= !hasKey;
  } finally {
    clearTimeout(timer);
    leaving.abort();
  }
  if (client.ids.length === 0) await Bun.sleep(retry_ms);
}

const idWords = /"id":"(resp_[0-9a-f]{32})"/;

export function textOf(output: readonly { content?: { text: string }[] }[]): string {
  return output.flatMap(({ content = [] }) => content.map(({ text }) => text)).join("");
}

/** Reads the response once more when everything is settled. */
export async function lookAgain(nodes: readonly Node[], key: string, client: BackgroundClient): Promise<void> {
  const node = nodes.find(({ running, frozen }) => running && !frozen);
  if (node && client.ids.length > 0) await tell(node, { key }, client);
}

async function tell(node: Node, { key }: Pick<Round, "key">, client: BackgroundClient, act = ""): Promise<void> {
  try {
    const response = await fetch(`${node.url}/v1/responses/${client.ids.at(-1)}${act}`, {
      method: act === "" ? "GET" : "POST",
      headers: { authorization: `Bearer ${key}`, connection: "close" },
      signal: AbortSignal.timeout(5_000),
    });
    const said = (await response.json()) as {
      status?: string;
      error?: { message: string } | null;
      usage?: { output_tokens: number } | null;
      output?: { content?: { text: string }[] }[];
    };
    if (response.status === 503) return;
    client.told.push({
      ...{ node: node.name, at_ms: Date.now(), status: said.status ?? `${response.status}` },
      error: said.error?.message ?? null,
      outputTokens: said.usage?.output_tokens ?? null,
      textTokens: tokens(textOf(said.output ?? [])).length,
    });
  } catch {
    // The node is down or unreachable.
  }
}

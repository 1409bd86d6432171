// A client with an idempotency key whose connection is cut at a random byte, and that repeats its request at another
// node until it has a whole response. It records every response.

import { until } from "../harness/until.ts";
import type { Chance } from "./chance.ts";
import { protocols, type Spoken } from "./protocols.ts";
import { lease_s, model, type Node, post } from "./rig.ts";

/** A part of the error message of a response whose node is gone. */
export const goneWords = "node that wrote it is gone";
/**
 * A part of the error message of a repeat that could not read the rest of the stored log. The response itself may be
 * complete.
 */
export const unreadWords = "cannot keep an answer now";
/** A part of the error message of a response whose node was cut off for longer than its lease. */
export const lostLeaseWords = "lost its connection to the usage store";
/**
 * A part of the error message that a reader of the stored log appends to a stream whose node had charged it and was
 * gone before it stored the stream's end.
 */
export const cutWords = "was gone before it wrote why";
/** A part of the error message of a response whose stored log was lost. */
export const lostWords = "is no longer there";

export interface Answer {
  node: string;
  /** The HTTP status; null if there was no response. */
  status: number | null;
  requestId: string;
  /** The ID of the original request, if this response is a repeat of that request's response. */
  replayOf: string | null;
  /** The bytes of the body that were received, each as one character. */
  body: string;
  /**
   * How the response ended.
   * - `whole`: complete.
   * - `failed`: without a result, because its node was gone, or a repeat could not read the stored log any further.
   * - `broken`: by an error that is part of the stored response, as of a node that lost its lease.
   * - `silent`: the body was complete, but lacks the protocol's end.
   * - `cut`: the connection broke, or the client closed it.
   * - `lost`: refused for good, because the stored log was lost.
   */
  end: "whole" | "failed" | "broken" | "silent" | "cut" | "lost";
  took_ms: number;
  /** The time at which the client sent the request. */
  at_ms: number;
}

export interface Client {
  marker: string;
  path: string;
  stream: boolean;
  /** The number of output tokens that the client asks the simulated engine for. */
  wanted: number;
  answers: Answer[];
  began_ms: number;
  ended_ms: number;
  /** The fault that hit the client's node after the client had been cut off. */
  harm: Harm | null;
  /** Whether the client finally got a whole response, a response that ends in a stored error, or a refusal for good. */
  isServed: boolean;
  /** Whether the client never repeats its request, or gave up because its limits refused it for too long. */
  hasGivenUp: boolean;
}

export type Harm = "killed" | "frozen";

interface Asking {
  client: Client;
  key: string;
  protocol: Spoken;
  body: object;
}

const tokensPerSecond = 100;
/**
 * The rough size in bytes of a token in a stream. Multiplied by the tokens, it bounds the random byte at which the
 * client is cut off.
 */
const token_bytes = 220;
/**
 * How long a client repeats its request, in milliseconds: longer than the claim of a key can last if its node died
 * before a hold was granted.
 */
const patience_ms = 90_000;
const retry_ms = 100;
/**
 * How long a settlement may take, in milliseconds: longer than another node takes to settle the requests of a frozen
 * node, and longer than the frozen node takes once it runs again.
 */
const settled_ms = 1000 * (3 * lease_s + 4);
/** The most requests that a client sends: more than any client needs, whatever outages there are. */
const answers_max = 300;
/** How long a client repeats its request while its limits refuse it, in milliseconds. */
const refused_ms_max = 3_000;

export interface RepeatOptions {
  nodes: readonly Node[];
  key: string;
  marker: string;
  chance: Chance;
  /** Kills or freezes the node, if others are running, and restores it later. Absent if no round is to harm a node. */
  harm?(node: Node, how: Harm): Promise<void>;
  /** Whether the client never repeats its request after it is cut off. */
  leavesForGood?: boolean;
}

/**
 * Runs one round of a client with an idempotency key. In one of four rounds the node is killed after its client was cut
 * off, and in one of eight the node is frozen.
 */
export async function repeatRound(options: RepeatOptions): Promise<Client> {
  const { nodes, key, marker, chance, leavesForGood = false } = options;
  const protocol = chance.pick(protocols);
  const [stream, wanted] = [chance.next() < 0.7, 10 + chance.below(60)];
  const harm = options.harm ? harmOf(chance.next()) : null;
  const client: Client = {
    ...{ marker, path: protocol.path, stream, wanted, answers: [], harm },
    ...{ began_ms: Date.now(), ended_ms: Number.POSITIVE_INFINITY, isServed: false, hasGivenUp: leavesForGood },
  };
  const prompt = `[simulator: tps=${tokensPerSecond} tokens=${wanted}] ${marker}`;
  const asking = { client, key, protocol, body: { model, stream, ...protocol.body(prompt) } };
  const cutAt = () => cutOf(chance, stream, wanted);
  const running = () => nodes.filter((other) => other.running && !other.frozen);
  let serving: Node[] = [];
  const isServed = () => {
    serving = running();
    return serving.length > 0;
  };
  await until(isServed, patience_ms, "a node that runs");
  // A node that was running at the start of the round; it may be down by now.
  let node = chance.pick(serving);
  await ask(node, asking, cutAt());
  if (harm) await options.harm?.(node, harm);
  const until_ms = performance.now() + patience_ms;
  // The client may be cut off a second time.
  let cut = chance.next() < 0.25 ? cutAt() : uncut;
  while (isWaiting(client) && client.answers.length < answers_max && performance.now() < until_ms) {
    const others = running().filter((other) => other !== node);
    if (others.length > 0) {
      node = chance.pick(others);
      await ask(node, asking, cut);
      cut = uncut;
    }
    client.hasGivenUp = isRefused(client);
    if (isWaiting(client)) await Bun.sleep(retry_ms);
  }
  client.ended_ms = Date.now();
  return client;
}

function harmOf(number: number): Harm | null {
  if (number < 0.25) return "killed";
  return number < 0.375 ? "frozen" : null;
}

const isWaiting = ({ isServed, hasGivenUp }: Client) => !isServed && !hasGivenUp;

/**
 * Whether the client's limits have refused all its requests for `refused_ms_max`. Then there is no stored response that
 * a repeat could return.
 */
function isRefused({ answers }: Client): boolean {
  const refused = answers.slice(answers.findLastIndex(({ status }) => status !== 429) + 1);
  return refused.length * retry_ms >= refused_ms_max;
}

interface Cut {
  after_bytes: number;
  after_ms: number;
}

const uncut: Cut = { after_bytes: Number.POSITIVE_INFINITY, after_ms: patience_ms };

/**
 * Draws where the client is cut off: a stream at a random byte, or before its first byte; an unstreamed response at a
 * random moment.
 */
function cutOf(chance: Chance, isStream: boolean, wanted: number): Cut {
  const duration_ms = (wanted * 1000) / tokensPerSecond;
  if (isStream && chance.next() < 0.9) return { ...uncut, after_bytes: 1 + chance.below(wanted * token_bytes) };
  return { ...uncut, after_ms: chance.below(duration_ms * 1.2) };
}

async function ask(node: Node, { client, key, protocol, body }: Asking, cut: Cut): Promise<void> {
  const leaving = new AbortController();
  const timer = setTimeout(() => leaving.abort(), cut.after_ms);
  const began_ms = performance.now();
  const answer: Answer = {
    ...{ node: node.name, status: null, requestId: "", replayOf: null, body: "", end: "cut" },
    ...{ took_ms: 0, at_ms: performance.now() },
  };
  client.answers.push(answer);
  try {
    const headers = { "idempotency-key": client.marker, connection: "close" };
    const response = await post(node, protocol.path, key, body, { headers, signal: leaving.signal });
    answer.status = response.status;
    answer.requestId = response.headers.get("x-service-request-id") ?? "";
    answer.replayOf = response.headers.get("x-service-replay-of");
    for await (const chunk of response.body!) {
      answer.body += Buffer.from(chunk).toString("latin1");
      if (answer.body.length >= cut.after_bytes) {
        answer.body = answer.body.slice(0, cut.after_bytes);
        return;
      }
    }
    answer.end = endOf(answer, client.stream, protocol);
    client.isServed = answer.end === "whole" || answer.end === "lost" || isBrokenForGood(client.answers);
  } catch {
    // The client was cut off, or the node is down.
  } finally {
    clearTimeout(timer);
    leaving.abort();
    answer.took_ms = Math.round(performance.now() - began_ms);
  }
}

/**
 * Whether an error is still repeated after its request has surely been settled. Then the request was charged; a key
 * whose request was not charged would be free by now.
 */
function isBrokenForGood(answers: readonly Answer[]): boolean {
  const last = answers.at(-1)!;
  if (last.end !== "broken") return false;
  const run = runOf(last);
  const first = answers.find((one) => one.end === "broken" && runOf(one) === run)!;
  return last.at_ms - first.at_ms > settled_ms;
}

/** The ID of the request that produced the response. */
export function runOf({ replayOf, requestId }: Answer): string {
  return replayOf ?? requestId;
}

export function endOf(
  { status, body }: Pick<Answer, "status" | "body">,
  isStream: boolean,
  protocol: Spoken,
): Answer["end"] {
  if (body.includes(lostWords)) return "lost";
  if (status !== 200) return "failed";
  if (!isStream) return "whole";
  if (body.includes(goneWords) || body.includes(unreadWords)) return "failed";
  if (failure.test(body)) return "broken";
  return protocol.end.test(body) ? "whole" : "silent";
}

/** Matches the error frame of a stream, in any of the protocols. */
const failure = /^event: (error|response\.failed)$|^data: \{"error":\{/m;

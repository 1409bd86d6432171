// A client with an idempotency key whose connection is cut at a random byte, and that asks again at another node until it
// has a whole answer. It writes down every answer that it got.

import { until } from "../harness/until.ts";
import type { Chance } from "./chance.ts";
import { protocols, type Spoken } from "./protocols.ts";
import { lease_s, model, type Node, post } from "./rig.ts";

/** The words of the failure that ends an answer whose node is gone. */
export const goneWords = "node that wrote it is gone";
/**
 * The words of the failure that ends a repeat when the rest of the log could not be read; the answer itself may be
 * complete.
 */
export const unreadWords = "cannot keep an answer now";
/** The words of the failure of a node that was away for longer than its lease. */
export const lostLeaseWords = "lost its connection to the usage store";
/**
 * The words of the failure that a reader writes at the end of a stream that its node had charged before the node was
 * gone.
 */
export const cutWords = "was gone before it wrote why";
/** The words of the failure of an answer whose log is gone. */
export const lostWords = "is no longer there";

export interface Answer {
  node: string;
  /** Null if there was no answer. */
  status: number | null;
  requestId: string;
  /** The ID of the request whose answer this one repeats. */
  replayOf: string | null;
  /** The bytes of the body that came, each as a character. */
  body: string;
  /**
   * How the answer ended.
   * - `whole`: complete.
   * - `failed`: without an answer, as its node was gone, or a repeat could not read the log any further.
   * - `broken`: by a node that lost its lease; the failure is part of the answer.
   * - `silent`: the body was complete, but lacks the protocol's end.
   * - `cut`: its connection broke, or the client broke it.
   * - `lost`: refused for good, as its log is gone.
   */
  end: "whole" | "failed" | "broken" | "silent" | "cut" | "lost";
  took_ms: number;
  /** When the client asked for the answer. */
  at_ms: number;
}

export interface Client {
  marker: string;
  path: string;
  stream: boolean;
  /** The output tokens that the client's engine is asked for. */
  wanted: number;
  answers: Answer[];
  began_ms: number;
  ended_ms: number;
  /** What happened to the client's node after the client had been cut off. */
  harm: Harm | null;
  /** Whether the client got in the end a whole answer, or one whose failure is part of it, or a refusal for good. */
  isServed: boolean;
  /** The client left for good, or its limits refused it for so long that it gave up. */
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
 * The rough size in bytes of a token in a stream. It gives the estimated size of an answer, within which a random byte
 * for the cut is drawn.
 */
const token_bytes = 220;
/**
 * How long a client asks for its answer: longer than a key's claim can last if its node died before a hold was granted.
 */
const patience_ms = 90_000;
const retry_ms = 100;
/**
 * How long a settlement may take: longer than another node takes to settle the run of a frozen node, and than the
 * frozen node takes once it is thawed.
 */
const settled_ms = 1000 * (3 * lease_s + 4);
/** The most answers that a client asks for: more than any client needs, whatever is away meanwhile. */
const answers_max = 300;
/** How long a client goes on asking while its limits refuse it. */
const refused_ms_max = 3_000;

export interface RepeatOptions {
  nodes: readonly Node[];
  key: string;
  marker: string;
  chance: Chance;
  /** Kills or freezes the node, if others are left, and brings it back later. Absent: no round harms a node. */
  harm?(node: Node, how: Harm): Promise<void>;
  /** Whether the client, once it is cut off, never asks again. */
  leavesForGood?: boolean;
}

/**
 * Does one round of a client with an idempotency key. In one of four, the node is killed when its client has been cut
 * off, and in one of eight it is frozen.
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
  // Picks one of the nodes that were seen running: by now even the last of them may have been killed.
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
 * Whether the client's limits have refused it, without another answer in between, for `refused_ms_max`: then there is
 * no answer to come back to.
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
 * Draws where the client is cut off: a stream at a random byte, or before its first one, and an answer in one piece at
 * a random moment.
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
    // The client was cut off, or the node is gone.
  } finally {
    clearTimeout(timer);
    leaving.abort();
    answer.took_ms = Math.round(performance.now() - began_ms);
  }
}

/**
 * Whether a failure is still repeated after its run has surely been settled. Then the run was charged; the key of a run
 * that was not charged would be free by now.
 */
function isBrokenForGood(answers: readonly Answer[]): boolean {
  const last = answers.at(-1)!;
  if (last.end !== "broken") return false;
  const run = runOf(last);
  const first = answers.find((one) => one.end === "broken" && runOf(one) === run)!;
  return last.at_ms - first.at_ms > settled_ms;
}

/** The ID of the request that the answer belongs to. */
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

/** Matches the end of an answer that failed, in any of the protocols. */
const failure = /^event: (error|response\.failed)$|^data: \{"error":\{/m;

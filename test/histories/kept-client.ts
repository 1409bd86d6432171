// A request with an idempotency key in a history (a simulated run): the product's own code (src/features/responses)
// claims the key, writes the log of the answer, and reads the log for clients that repeat the request.

import type { Principal } from "../../src/core/auth/verdict.ts";
import type { Call } from "../../src/core/http/call.ts";
import type { InferenceEvent } from "../../src/core/inference/event.ts";
import { asFault, Fault } from "../../src/core/inference/fault.ts";
import type { ResponseObject } from "../../src/core/protocol/openai-responses/contract.ts";
import { Cancellation } from "../../src/core/time/cancellation.ts";
import { passed } from "../../src/core/time/clock.ts";
import type { Ending } from "../../src/core/usage/record.ts";
import { currentResponse, EarlierResponse } from "../../src/features/responses/current-response.ts";
import { Follower } from "../../src/features/responses/follower.ts";
import { Keeping } from "../../src/features/responses/keeping.ts";
import { entriesText, withinClaimTime } from "../../src/features/responses/needs.ts";
import type { Account } from "./account.ts";
import { request } from "./client.ts";
import type { Judge } from "./judge.ts";
import type { Node } from "./node.ts";
import { readerEnding, readerEnds } from "./reader-ends.ts";
import type { RequestPlan } from "./scenario.ts";
import type { World } from "./world.ts";

/**
 * The members of a `Call` that are used by the product's code for kept answers (stored so that they can be read again).
 */
class KeyedCall {
  readonly signal = new Cancellation();
  readonly client = new Cancellation();
  readonly notes: { outcome?: string; firstPart_ms?: number; stream: boolean };
  readonly request = { signal: this.client };

  constructor(
    readonly requestId: string,
    stream: boolean,
  ) {
    this.notes = { stream };
  }

  leave(fault = new Fault("internal_error", "The client closed the connection.")): void {
    this.signal.abort(fault);
  }
}

/** A run whose answer is kept (stored for repeats), as its client in a history sees it (client.ts). */
export class KeptRun {
  readonly keeping: Keeping;
  readonly #call: KeyedCall;

  constructor(
    world: World,
    readonly judge: Judge,
    node: Node,
    readonly plan: RequestPlan,
  ) {
    this.#call = new KeyedCall(plan.id, plan.stream);
    const organization = { id: world.scenario.organizations[plan.organization]!.id, keepsContent: true };
    const claim = { key: plan.first, body: plan.first };
    const keptAs = { claim, isBackground: plan.isBackground, isStream: plan.stream };
    this.keeping = new Keeping(node.keeps, this.call, { organization } as Principal, keptAs);
    if (plan.stream) this.keeping.streamsTo(this);
  }

  get call(): Call {
    return this.#call as unknown as Call;
  }

  get hasLeft(): boolean {
    return this.#call.client.aborted;
  }

  /** Opens the log or the response, before any part of the answer is read. Throws Faults. */
  async begins(): Promise<void> {
    const { isBackground, stream } = this.plan;
    if (isBackground) await this.keeping.respond(this.#response("in_progress"));
    if (stream || !isBackground) await this.keeping.open({ stream, headers: {} });
  }

  leave(): void {
    this.#call.client.abort(new Fault("internal_error", "The client closed the connection."));
  }

  ended({ outcome }: Ending): void {
    this.#call.notes.outcome = outcome;
  }

  /** Handles events that have passed the meter as src/features/responses/first-client.ts and answer.ts do. */
  async writes(account: Account, batch: readonly InferenceEvent[]): Promise<void> {
    const { plan, keeping } = this;
    if (batch.some(({ type }) => type === "part-start")) this.#call.notes.firstPart_ms = 1;
    const last = batch.at(-1)?.type;
    if (plan.isBackground) await this.#goesOnTo(account, batch);
    if (plan.isBackground && !plan.stream) return;
    const isOver = last === "response-end" || last === "response-failed";
    if (plan.stream || last === "response-end") {
      const text = `${plan.id} ${account.passed}${isOver ? " over" : ""};`;
      account.text += text;
      keeping.write(text, last === "response-failed");
    }
    if (!isOver) return keeping.room();
    if (plan.stream || last === "response-end") await keeping.end();
  }

  /** Handles the events of a background response as src/features/responses/background.ts does. */
  async #goesOnTo(account: Account, batch: readonly InferenceEvent[]): Promise<void> {
    const last = batch.at(-1);
    if (last?.type === "response-failed") await this.keeping.fails(last.fault);
    if (last?.type !== "response-end") return;
    const text = `${this.plan.id} ${account.passed} over;`;
    if (!this.plan.stream) account.text = text;
    await this.keeping.finish(this.#response("completed", text));
  }

  #response(status: ResponseObject["status"], text = ""): ResponseObject {
    return { id: `resp_${this.plan.id}`, status, output: text } as unknown as ResponseObject;
  }
}

export async function keyedRequest(world: World, judge: Judge, node: Node, plan: RequestPlan): Promise<void> {
  const run = new KeptRun(world, judge, node, plan);
  const asked = { plan, node, at_ms: world.time.now_ms };
  node.open += 1;
  judge.asksWithKey(asked);
  try {
    const earlier = await run.keeping.begin();
    if (earlier instanceof Follower) await follow(judge, asked, earlier);
    else if (earlier instanceof EarlierResponse) await poll(judge, asked, earlier);
    else await request(world, judge, node, plan, run);
  } catch (thrown) {
    judge.refusedToRepeat(asked, asFault(thrown));
  } finally {
    await run.keeping[Symbol.asyncDispose]();
    node.open -= 1;
    judge.hasItsAnswer(asked);
  }
}

export interface Asked {
  plan: RequestPlan;
  node: Node;
  at_ms: number;
}

const withoutEnd = (text: string) => Object.values(readerEnds).reduce((left, end) => left.replace(end, ""), text);

async function follow(judge: Judge, asked: Asked, earlier: Follower): Promise<void> {
  let text = "";
  for (;;) {
    const entries = await earlier.read();
    if (typeof entries === "string") {
      text += await earlier.endAs(entries, readerEnding);
      return judge.repeated(asked, earlier.name.requestId, { text: withoutEnd(text), end: entries });
    }
    text += entriesText(entries);
    if (!entries.at(-1)?.isEnd) continue;
    const end = text.endsWith(readerEnds.dead) ? "dead" : text.endsWith(readerEnds.cut) ? "cut" : "whole";
    return judge.repeated(asked, earlier.name.requestId, { text: withoutEnd(text), end });
  }
}

/** The interval at which a client asks for a background response. */
const poll_ms = 1_000;

async function poll(judge: Judge, asked: Asked, { name }: EarlierResponse): Promise<void> {
  const { keeps, clock } = asked.node;
  const now = async () => {
    const kept = await withinClaimTime(clock, keeps.kept.answers.find(name.requestId));
    return kept && withinClaimTime(clock, currentResponse(keeps, kept));
  };
  for (;;) {
    const response = await now().catch(() => "away" as const);
    if (response !== "away" && response?.status !== "in_progress")
      return judge.fetched(asked, name.requestId, response as { status: string; output: unknown } | null);
    await passed(clock, poll_ms);
  }
}

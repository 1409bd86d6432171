/**
 * One answer that is kept: holds the claim of its idempotency key, writes its log, and decides at its end whether the
 * key becomes free. Rules: docs/protocols.md, Repeating a request.
 */

import type { Principal } from "../../core/auth/verdict.ts";
import type { Call } from "../../core/http/call.ts";
import { asFault, Fault } from "../../core/inference/fault.ts";
import type { ResponseObject } from "../../core/protocol/openai-responses/contract.ts";
import { passed } from "../../core/time/clock.ts";
import type { Fetched } from "../../core/usage/record.ts";
import type { Run } from "../../core/usage/run.ts";
import { type EarlierResponse, earlierResponse, failedResponse } from "./current-response.ts";
import type { OpenAnswer, Unkept } from "./dependencies.ts";
import { Follower } from "./follower.ts";
import { LogWriter, storePatience_ms, storeRetry_ms } from "./log-writer.ts";
import { answerLost, available, type KeepingNeeds, type LogHead, unavailable, withinClaimTime } from "./needs.ts";
import type { LogName } from "./store/answer-log.ts";
import type { Claim, Kept } from "./store/kept.ts";

interface KeptAs {
  /** The claim of the request's idempotency key; null if the request has no such key. */
  claim: Claim | null;
  isBackground: boolean;
  isStream: boolean;
}

/** The client to which an answer is streamed while it is kept. */
interface StreamClient {
  readonly hasLeft: boolean;
}

export class Keeping implements AsyncDisposable, OpenAnswer, Fetched {
  readonly #needs: KeepingNeeds;
  readonly #call: Call;
  readonly #name: LogName;
  readonly #kept: KeptAs;
  #writer: LogWriter | null = null;
  #isClaimed = false;
  #end: Promise<void> | null = null;
  #begun: ResponseObject | null = null;
  #isFinished = false;
  /** Whether the background response was ended by a cancellation, or as gone, and not by its own run. */
  #isEndedElsewhere = false;
  /** Whether the database has noted that the log is lost; null while the log is not lost. */
  #lossNoted: Promise<boolean> | null = null;
  /** Whether the store has the complete background response. */
  #isWhole = false;
  #run: Pick<Run, "confirmed"> | null = null;
  #client: StreamClient | null = null;
  /** The failure that would end the log, held back until the ledger says who settled this run. */
  #withheld: string | null = null;
  #failure: Fault | null = null;

  /** Begins to keep an answer. Throws a Fault if the organization keeps no content. */
  constructor(needs: KeepingNeeds, call: Call, { organization }: Principal, kept: KeptAs) {
    const asks = kept.isBackground ? "background" : "idempotency-key";
    if (!organization.keepsContent) {
      throw new Fault(
        "unsupported_feature",
        `Your organization keeps no content, so no answer can be read again. Send the request without '${asks}'.`,
        { param: asks },
      );
    }
    this.#needs = needs;
    this.#call = call;
    this.#name = { requestId: call.requestId, organizationId: organization.id };
    this.#kept = kept;
  }

  get isBackground(): boolean {
    return this.#kept.isBackground;
  }

  get hasBegun(): boolean {
    return this.#begun !== null;
  }

  /** Whether a request with the same idempotency key gets this answer. */
  get isRepeatable(): boolean {
    return this.#kept.claim !== null;
  }

  /**
   * Whether the answer's text is written to the log as it is produced. Not if the answer has an idempotency key and is
   * not streamed: then it is delivered complete, or begun anew.
   */
  get asProduced(): boolean {
    return this.isStreamed || !this.isRepeatable;
  }

  get isStreamed(): boolean {
    return this.#kept.isStream;
  }

  /** How the answer is fetched; null if it is not a background response. */
  get fetched(): Fetched | null {
    return this.isBackground ? this : null;
  }

  /** Sets the run of this answer. Call it when the run has begun. Dispose of the run before this object. */
  follows(run: Pick<Run, "confirmed">): void {
    this.#run = run;
  }

  /** Sets the client to which the answer is streamed. It gets all text, also once the log is lost. */
  streamsTo(client: StreamClient): void {
    this.#client = client;
  }

  get requestId(): string {
    return this.#name.requestId;
  }

  /** Makes the answer a background response, which other requests can read from now on. */
  async respond(begun: ResponseObject): Promise<void> {
    this.#begun = begun;
    const { answers } = this.#needs.kept;
    const isOpen = await available(this.#needs, answers.respond(this.requestId, begun.id, JSON.stringify(begun)));
    if (!isOpen) throw claimGone();
  }

  /** Ends the background response. False if it was cancelled before. */
  async finish(response: ResponseObject): Promise<boolean> {
    this.#isWhole = await this.#finish(response, false);
    return this.#isWhole;
  }

  async #finish(response: ResponseObject, freesClaim: boolean): Promise<boolean> {
    this.#isFinished = true;
    const { answers, clock } = this.#needs.kept;
    const text = JSON.stringify(response);
    const bytes = this.#writer?.bytes ?? text.length;
    const end = { state: "ended", bytes, response: text, responseId: response.id, freesClaim } as const;
    // A second attempt may find the end that the first one wrote.
    const isEnd = async () =>
      (await answers.end(this.requestId, end)) || (await answers.find(this.requestId))?.response === text;
    const until_ms = clock.now_ms() + storePatience_ms;
    for (;;) {
      try {
        const isOwnEnd = await withinClaimTime(clock, isEnd());
        this.#isEndedElsewhere = !isOwnEnd;
        return isOwnEnd;
      } catch (cause) {
        if (clock.now_ms() >= until_ms) {
          this.#failed(cause);
          return false;
        }
        await passed(clock, storeRetry_ms);
      }
    }
  }

  /**
   * Ends the background response as failed. If the response has an idempotency key, the response ends only after the
   * run's settlement is confirmed (`#free`).
   */
  async fails(fault: Fault): Promise<void> {
    if (!this.#begun || this.#isFinished) return;
    this.#failure ??= fault;
    if (!this.isRepeatable) await this.#finish(failedResponse(this.#begun, fault, this.requestId), false);
  }

  cancel(): void {
    if (!this.#isFinished) this.#call.cancel();
  }

  /**
   * Called if another end of the response was stored before this one. If that end is a cancellation, this request
   * counts as cancelled too, and its receipt says so.
   */
  async endedBefore(): Promise<void> {
    const stored = await this.#needs.kept.answers.find(this.requestId).catch(() => null);
    const status = stored?.response && (JSON.parse(stored.response) as ResponseObject).status;
    if (status === "cancelled") this.#call.cancel();
  }

  /**
   * Takes the claim of this answer and returns null, or returns the answer that another request with the same key has
   * begun. Throws Faults.
   */
  async begin(): Promise<Follower | EarlierResponse | null> {
    const { answers, open, room, settings } = this.#needs.kept;
    if (open.size >= settings().open_max) throw tooMany();
    open.add(this);
    for (;;) {
      const earlier = await available(this.#needs, answers.begin({ ...this.#name, claim: this.#kept.claim }));
      if (earlier === "begun") {
        this.#isClaimed = true;
        room.ask(this.#name.organizationId);
        return null;
      }
      if (earlier.body !== this.#kept.claim?.body) throw reused();
      if (earlier.state === "lost") throw answerLost();
      const found = await this.#found(earlier);
      if (found) return found;
    }
  }

  /** The earlier request's answer; null if its idempotency key is free by now. */
  async #found(earlier: Kept): Promise<Follower | EarlierResponse | null> {
    const { isBackground, isStream } = this.#kept;
    if (isBackground && !isStream) return earlierResponse(this.#needs, this.#call, earlier);
    const follower = new Follower(this.#needs, this.#call, earlier);
    return (await follower.begun()) ? follower : null;
  }

  /** Writes the head of the log, before the answer is read. Throws Faults. */
  async open(head: LogHead): Promise<void> {
    const { answers, logs, settings, clock } = this.#needs.kept;
    const { answer_bytes_max } = settings();
    const writer = new LogWriter({
      logs,
      name: this.#name,
      bytes_max: answer_bytes_max,
      clock,
      lost: (why, cause) => this.#lost(why, cause),
    });
    if ((await available(this.#needs, answers.find(this.#name.requestId)))?.state !== "open") throw claimGone();
    await available(this.#needs, writer.open(JSON.stringify(head)));
    this.#writer = writer;
  }

  /** Whether the log is complete so far. If not, only the first client gets the answer. */
  get isKept(): boolean {
    return this.#writer !== null && !this.#writer.isLost;
  }

  /**
   * Whether the answer continues when its client leaves, because it can be read again by its idempotency key, or
   * fetched by its id.
   */
  get goesOn(): boolean {
    return this.isBackground || this.isKept;
  }

  /**
   * Writes text to the log. `isFailure`: the text is the failure with which the answer ends. If the answer has an
   * idempotency key, a failure is written only after the settlement: if another node settles the run, which charges
   * nothing, the key becomes free.
   */
  write(text: string, isFailure = false): void {
    if (isFailure && this.isRepeatable) this.#withheld = text;
    else this.#writer?.write(text);
  }

  /**
   * Resolves to true when everything written so far can be read from the log, or was streamed to the first client; or
   * to false if neither can be.
   */
  async delivered(): Promise<boolean> {
    const isRead = this.#client?.hasLeft === false;
    return (await this.#writer?.stored()) || isRead;
  }

  async room(): Promise<void> {
    await this.#writer?.room();
  }

  /** Resolves when the log is complete or lost. The run is settled after that. */
  end(): Promise<void> {
    this.#end ??= this.#endLog();
    return this.#end;
  }

  async #endLog(): Promise<void> {
    const writer = this.#writer;
    if (!writer || writer.isLost) return;
    if (this.#withheld !== null) return writer.flushed();
    await writer.end();
    if (writer.isLost) return;
    this.#needs.kept.metrics.kept(writer.bytes);
    // The end of a background response is stored with its response object instead.
    if (!this.#begun) await this.#ended("ended", writer.bytes);
  }

  /** Frees the idempotency key if the request was refused, or failed before the first part of its answer. */
  async [Symbol.asyncDispose](): Promise<void> {
    const { answers, logs, open } = this.#needs.kept;
    open.delete(this);
    if (!this.#isClaimed) return;
    const { outcome } = this.#call.notes;
    try {
      if (this.#freesClaim) await this.#free();
      if (this.#isEndedElsewhere && this.isKept) await answers.measured(this.requestId, this.#writer!.bytes);
      const wentOn = outcome !== undefined && this.#call.request.signal.aborted;
      // Nobody reads the log of a response that is not streamed: its object is complete.
      if (this.#isWhole && this.#writer && !this.isStreamed) await logs.remove([this.#name]);
      if (wentOn && !this.#begun) await answers.writeNote(this.#name, { kind: "detached" });
    } catch (cause) {
      this.#failed(cause);
    } finally {
      void this.#noteLossAgain().catch(this.#failed);
    }
  }

  /**
   * Frees the idempotency key once the settlement is confirmed. If the key were freed earlier and this node died in
   * between, another node would charge the recovered usage in addition to the key's next run.
   */
  async #free(): Promise<void> {
    const { answers, logs, clock } = this.#needs.kept;
    if (this.isRepeatable) await withinClaimTime(clock, this.#run?.confirmed() ?? Promise.resolve());
    const stands = this.isRepeatable && this.#hasPart && (await this.#isSettledHere());
    if (this.#begun) {
      const fault = this.#failure ?? asFault(this.#call.signal.reason);
      await this.#finish(failedResponse(this.#begun, fault, this.requestId), !stands);
    }
    if (this.#withheld !== null && (stands || this.#begun)) {
      const failure = this.#withheld;
      this.#withheld = null;
      this.write(failure);
      await this.#endLog();
    } else if (this.#hasPart) await answers.abandon(this.#name.requestId);
    else if (!this.#begun) {
      await answers.free(this.#name.requestId);
      await logs.remove([this.#name]);
    }
  }

  /**
   * Whether a part of a stream was delivered. If so, a failure is the end of the answer, and the answer stays under its
   * idempotency key.
   */
  get #hasPart(): boolean {
    return this.isStreamed && this.#call.notes.firstPart_ms !== undefined;
  }

  /**
   * Whether this node has settled the run. If another node has, the run cost nothing: other nodes charge nothing for a
   * run with an idempotency key.
   */
  async #isSettledHere(): Promise<boolean> {
    const { kept, ledger } = this.#needs;
    const receipt = await withinClaimTime(kept.clock, ledger.receipt(this.#name.organizationId, this.requestId));
    return receipt !== null && receipt.endedAt !== null && !receipt.recovered;
  }

  get #freesClaim(): boolean {
    if (this.#withheld !== null) return true;
    if (this.#begun) return !this.#isFinished;
    const { outcome, firstPart_ms, stream } = this.#call.notes;
    if (!this.#writer || outcome === undefined) return true;
    // An answer that is not streamed is delivered complete or, if it failed, not at all.
    return outcome === "failed" && (firstPart_ms === undefined || stream !== true);
  }

  #lost(why: Unkept, cause: unknown): void {
    this.#failed(cause);
    this.#needs.kept.metrics.unkept(why);
    // A background response continues: it can be fetched without its log.
    this.#lossNoted = this.isBackground ? Promise.resolve(true) : this.#ended("lost", 0);
    void this.#lossNoted.then(() => this.#needs.kept.logs.remove([this.#name])).catch(this.#failed);
  }

  /**
   * Records the loss of the log once the run is settled, if the database was away when the log was lost. Without this
   * record, a repeat of the request would get the remaining part of the log as if it were the whole answer.
   */
  async #noteLossAgain(): Promise<void> {
    if ((await this.#lossNoted) !== false) return;
    await this.#run?.confirmed();
    if (await this.#ended("lost", 0)) await this.#needs.kept.logs.remove([this.#name]);
  }

  /** Records the end of the log in the database. Returns whether that succeeded. */
  async #ended(state: "ended" | "lost", bytes: number): Promise<boolean> {
    const work = this.#needs.kept.answers.end(this.#name.requestId, { state, bytes });
    try {
      await withinClaimTime(this.#needs.kept.clock, work);
      return true;
    } catch (cause) {
      this.#failed(cause);
      return false;
    }
  }

  readonly #failed = (cause: unknown): void => {
    this.#needs.log.event("warn", "answer_unkept", { request_id: this.#name.requestId, cause: String(cause) });
  };
}

/**
 * The fault of an answer whose claim another node has freed, because this node was away for too long: the answer must
 * not be delivered.
 */
function claimGone(): Fault {
  return unavailable(new Error("the claim is gone"));
}

function tooMany(): Fault {
  return new Fault("overloaded", "The service keeps too many answers at this moment. Please try again.", {
    retryAfterSeconds: 5,
  });
}

function reused(): Fault {
  return new Fault(
    "idempotency_key_reused",
    "Another request came with this 'idempotency-key' before. Use a new key for each new request.",
    { param: "idempotency-key" },
  );
}

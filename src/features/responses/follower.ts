/**
 * Reads the log of another request's answer from its first entry to its end, while that request runs on any node. The
 * ledger shows if that node is gone: then another node settles the request's hold.
 */
import type { Call } from "../../core/http/call.ts";
import type { Fault } from "../../core/inference/fault.ts";
import type { ResponseObject } from "../../core/protocol/openai-responses/contract.ts";
import { passed } from "../../core/time/clock.ts";
import { cutShort, deleted, endedAsGone, gone, neverBegun } from "./current-response.ts";
import {
  answerLost,
  available,
  entriesText,
  goesOn,
  isUngranted,
  type KeepingNeeds,
  type LogHead,
  poll_ms,
  type StreamEnding,
  settled_ms_max,
  withinClaimTime,
} from "./needs.ts";
import type { LogEntry, LogName } from "./store/answer-log.ts";
import type { Kept } from "./store/kept.ts";

/** How often a reader without new entries checks whether the writer still runs. */
const look_ms = 2_000;

/**
 * Why there will be no more entries in the log. `refused`: the first request was refused or failed before the first
 * part of its answer, or its response was deleted. `free`: another reader found its node gone, and freed its idempotency
 * key. `dead`: its node is gone, and nothing was charged. `cut`: its node has settled the run, and was gone before it
 * wrote the end of the stream; the log has all of the text. `lost`: the log is incomplete.
 */
export type Fate = "refused" | "free" | "dead" | "cut" | "lost";

export class Follower {
  readonly #needs: KeepingNeeds;
  readonly #call: Call;
  readonly #kept: Kept;
  readonly #began_ms: number;
  #next = 0;
  /** The size of the entries that were read. */
  #bytes = 0;
  #head: LogHead | null = null;
  /** Entries that were read from the log, and that `read` has not returned yet. */
  #unread: LogEntry[] = [];
  #looked_ms = Number.NEGATIVE_INFINITY;
  #settled_ms: number | null = null;

  constructor(needs: KeepingNeeds, call: Call, kept: Kept) {
    this.#needs = needs;
    this.#call = call;
    this.#kept = kept;
    this.#began_ms = this.#now_ms;
  }

  get name(): LogName {
    return this.#kept;
  }

  get #now_ms(): number {
    return this.#needs.kept.clock.now_ms();
  }

  get head(): LogHead {
    return this.#head!;
  }

  /** The text of an answer that is not streamed. */
  get text(): string {
    return entriesText(this.#unread);
  }

  /**
   * Waits for the first text of a stream, at most `first_event_hold_ms`, or for the end of an answer that is not
   * streamed. False if the idempotency key is free, so that it can be claimed again. Throws Faults.
   */
  async begun(): Promise<boolean> {
    const first = await this.read();
    if (typeof first === "string") return this.#over(first);
    this.#head = JSON.parse(first.shift()!.text) as LogHead;
    this.#unread = first;
    if (!this.#head.stream) return this.#whole();
    if (first.length > 0) return true;
    const entries = await this.read(this.#now_ms + this.#needs.limits.first_event_hold_ms);
    if (entries === "cut") return true;
    if (typeof entries === "string") return this.#over(entries);
    this.#unread = entries;
    return true;
  }

  /**
   * Waits for the whole answer. The node may have written all of the text, and be gone before its end and its charge:
   * then the answer counts as never given.
   */
  async #whole(): Promise<boolean> {
    const whole = this.#unread.splice(0);
    while (!whole.at(-1)?.isEnd) {
      const entries = await this.read();
      if (typeof entries === "string") return this.#over(entries);
      whole.push(...entries);
    }
    this.#unread = whole;
    return true;
  }

  /** Reads the head of the log. False if there is none. */
  async opened(): Promise<boolean> {
    const first = await this.#needs.kept.logs.read(this.#kept, 0);
    if (first === "lost" || first.length === 0) return false;
    this.#took(first);
    this.#head = JSON.parse(first.shift()!.text) as LogHead;
    this.#unread = first;
    return true;
  }

  /** The next entries; none if `until_ms` has passed. Throws if the reader's client has left. */
  async read(until_ms = Number.POSITIVE_INFINITY): Promise<LogEntry[] | Fate> {
    if (this.#unread.length > 0) return this.#unread.splice(0);
    const { logs } = this.#needs.kept;
    for (;;) {
      if (this.#call.request.signal.aborted) this.#call.leave();
      this.#call.signal.throwIfAborted();
      const entries = await available(this.#needs, logs.read(this.#kept, this.#next));
      if (entries === "lost") return "lost";
      this.#took(entries);
      if (entries.length > 0 || this.#now_ms >= until_ms) return entries;
      const fate = await available(this.#needs, this.#fate());
      if (fate !== null) return this.#last(fate);
      await passed(this.#needs.kept.clock, poll_ms);
    }
  }

  /**
   * Ends an answer that has this fate, and returns the end, which is the same for all readers. If the node is gone, the
   * answer's idempotency key is freed before the client reads the failure. But an answer that was charged stays under
   * its key.
   */
  async endAs(fate: Fate, ending: StreamEnding): Promise<string> {
    if (fate === "lost") return ending.end(answerLost(), this.#kept.requestId);
    if (fate === "refused") return ending.end(this.#kept.responseId ? deleted() : neverBegun(), this.#kept.requestId);
    if (fate === "dead") await this.#bury();
    const end = await this.#endLog(ending, fate === "cut" ? cutShort() : gone());
    if (fate === "cut") await this.#close();
    return end;
  }

  /**
   * Frees the idempotency key of an answer whose node is gone. A background response stays, with the status `failed`.
   */
  async #bury(): Promise<void> {
    const { answers } = this.#needs.kept;
    const kept = await available(this.#needs, answers.find(this.#kept.requestId));
    if (!kept?.response) {
      // The node that was thought gone runs after all, and has a grant by now.
      if (!(await available(this.#needs, answers.abandon(this.#kept.requestId)))) throw goesOn();
      return;
    }
    // The node had stored the response and died before it was charged: the response stays, and its idempotency key is
    // freed.
    if (kept.state === "ended") return void (await available(this.#needs, answers.abandon(kept.requestId)));
    const begun = JSON.parse(kept.response) as ResponseObject;
    if ((await available(this.#needs, endedAsGone(this.#needs, kept, begun, this.#bytes))) === null) throw goesOn();
  }

  /**
   * Ends an answer whose node settled its run and is gone. The answer was charged, so it stays under its idempotency
   * key.
   */
  async #close(): Promise<void> {
    const { answers } = this.#needs.kept;
    const kept = await available(this.#needs, answers.find(this.#kept.requestId));
    if (kept?.response) await this.#bury();
    else await available(this.#needs, answers.end(this.#kept.requestId, { state: "ended", bytes: this.#bytes }));
  }

  /**
   * Ends a log whose writer is gone, with this failure after the entries so far. If another reader, or the writer
   * itself, has already written an end, returns that end, so that all readers get the same.
   */
  async #endLog(ending: StreamEnding, fault: Fault): Promise<string> {
    const { requestId } = this.#kept;
    const { clock, logs } = this.#needs.kept;
    let text = "";
    try {
      for (;;) {
        const entry = { text: ending.end(fault, requestId), isEnd: true };
        const appended = await withinClaimTime(clock, logs.append(this.#kept, this.#next, entry));
        const entries =
          appended === "appended" ? [entry] : await withinClaimTime(clock, logs.read(this.#kept, this.#next));
        if (entries === "lost" || entries.length === 0) break;
        this.#took(entries);
        text += entriesText(entries);
        if (entries.at(-1)!.isEnd) return text;
        ending.saw(entriesText(entries));
      }
    } catch (cause) {
      this.#needs.log.event("warn", "answer_unkept", { request_id: requestId, cause: String(cause) });
    }
    return text + ending.end(fault, requestId);
  }

  async #over(fate: Fate): Promise<false> {
    if (fate === "dead") await this.#bury();
    if (fate === "lost") {
      const { answers } = this.#needs.kept;
      const { requestId } = this.#kept;
      const kept = await available(this.#needs, answers.find(requestId));
      // A background response continues without its log.
      if (!kept?.response) await available(this.#needs, answers.end(requestId, { state: "lost", bytes: 0 }));
      // If the log was complete, the claim has the state `ended` already, and stays.
      throw answerLost();
    }
    return false;
  }

  /** Reads the last entries, which were written before the fate was known. */
  async #last(fate: Fate): Promise<LogEntry[] | Fate> {
    const entries = await available(this.#needs, this.#needs.kept.logs.read(this.#kept, this.#next));
    if (entries === "lost" || entries.length === 0) return fate;
    this.#took(entries);
    return entries;
  }

  #took(entries: readonly LogEntry[]): void {
    this.#next += entries.length;
    this.#bytes += Buffer.byteLength(entriesText(entries));
  }

  /** The fate of the log; null while the writer may still write. */
  async #fate(): Promise<Fate | null> {
    const now_ms = this.#now_ms;
    if (now_ms - this.#looked_ms < look_ms) return null;
    this.#looked_ms = now_ms;
    const { requestId, organizationId, age_ms } = this.#kept;
    const kept = await this.#needs.kept.answers.find(requestId);
    if (kept === null) return "refused";
    if (this.#kept.body !== null && kept.body === null) return "free";
    if (kept.state === "lost" || (this.#kept.state === "ended" && this.#kept.responseId === null)) return "lost";
    const receipt = await this.#needs.ledger.receipt(organizationId, requestId);
    // While the run is open, its node may still write the end of the log. If that node is gone, its lease lapses.
    if (receipt !== null && receipt.endedAt === null) return null;
    if (kept.state === "ended") {
      if (!this.#isLate(now_ms)) return null;
      return receipt?.recovered && receipt.nanos.charged === 0 ? "dead" : "lost";
    }
    if (receipt === null) return isUngranted(this.#needs, age_ms + now_ms - this.#began_ms) ? "dead" : null;
    if (receipt.recovered) return receipt.nanos.charged === 0 || kept.responseId !== null ? "dead" : "lost";
    // The node has settled the run, and is about to write the end of the log.
    if (!this.#isLate(now_ms)) return null;
    if (receipt.nanos.charged === 0) return "dead";
    return this.#head?.stream ? "cut" : "lost";
  }

  /** Whether the end of the log is overdue. */
  #isLate(now_ms: number): boolean {
    this.#settled_ms ??= now_ms;
    return now_ms - this.#settled_ms >= settled_ms_max;
  }
}

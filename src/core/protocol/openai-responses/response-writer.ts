/**
 * Writes the events of a Responses stream, always in this grammar:
 *
 *     response.created response.in_progress+ item* (response.completed | response.incomplete | response.failed) [DONE]
 *
 * with `sequence_number` counting up from 0 without a gap. Nothing is written after the end.
 */
import { type AroundDelta, aroundDelta, FrameWriter } from "../part-queue.ts";
import type { ResponseObject, ResponsesStreamEvent } from "./contract.ts";

type Unnumbered<Event> = Event extends unknown ? Omit<Event, "sequence_number"> : never;
export type UnnumberedEvent = Unnumbered<ResponsesStreamEvent>;

export class ResponseWriter extends FrameWriter {
  #state: "before" | "begun" | "over";
  #sequence: number;
  /**
   * The members of the response object that stay the same, as text: they include the tools, which are most of a long
   * request.
   */
  #lasting: string | null = null;

  /** `written`: the number of events of this stream that another writer has already written. */
  constructor(
    readonly begun: ResponseObject,
    written = 0,
  ) {
    super();
    this.#sequence = written;
    this.#state = written > 0 ? "begun" : "before";
  }

  start(): void {
    if (this.#state !== "before") return;
    this.#state = "begun";
    this.#putWhole("response.created", this.begun);
    this.#putWhole("response.in_progress", this.begun);
  }

  /** The first heartbeat begins the response, and further ones say that it is still in progress. */
  heartbeat(): void {
    if (this.#state === "begun") this.#putWhole("response.in_progress", this.begun);
    else this.start();
  }

  write(event: UnnumberedEvent): void {
    if (this.#state === "over") return;
    this.start();
    this.put({ event: event.type, data: `${numberless(event)}${this.#sequence++}}` });
  }

  /** The frame that `write` would write for an event with this delta. */
  frame(delta: string, { before, after }: AroundDelta): string {
    if (this.#state === "over") return "";
    return `${before}${JSON.stringify(delta)}${after}${this.#sequence++}}\n\n`;
  }

  finish(response: ResponseObject): void {
    const { status } = response;
    if (this.#state === "over" || status === "in_progress" || status === "queued" || status === "cancelled") return;
    this.start();
    this.#putWhole(`response.${status}`, response);
    this.#state = "over";
    this.put({ data: "[DONE]" });
  }

  /**
   * Writes an event with a whole response object. Every such object begins with the members that change
   * (response-object.ts).
   */
  #putWhole(type: ResponsesStreamEvent["type"], response: ResponseObject): void {
    const {
      id,
      object,
      created_at,
      completed_at,
      status,
      error,
      incomplete_details,
      model,
      output,
      usage,
      ...lasting
    } = response;
    const passing = { id, object, created_at, completed_at, status, error, incomplete_details, model, output, usage };
    this.#lasting ??= JSON.stringify(lasting).slice(1);
    const text = `${JSON.stringify(passing).slice(0, -1)},${this.#lasting}`;
    const data = `{"type":"${type}","response":${text},"sequence_number":${this.#sequence++}}`;
    this.put({ event: type, data, isOneLine: true });
  }
}

/** The text before and after the delta in the frame of an event, up to its sequence number. */
export function aroundNumbered(event: UnnumberedEvent): AroundDelta {
  const { before, after } = aroundDelta({ event: event.type, data: numberless(event) });
  return { before, after: after.trimEnd() };
}

function numberless(event: UnnumberedEvent): string {
  return `${JSON.stringify(event).slice(0, -1)},"sequence_number":`;
}

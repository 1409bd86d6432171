/**
 * Writes the events of a Responses stream, always in this grammar:
 *
 *     response.created response.in_progress+ item* (response.completed | response.incomplete | response.failed) [DONE]
 *
 * with `sequence_number` counting up from 0 without a gap. Nothing is written after the end.
 */
import { type AroundDelta, aroundDelta } from "../delta-frame.ts";
import { FrameWriter } from "../frame-writer.ts";
import type { ResponseObject, ResponsesStreamEvent } from "./contract.ts";

type Unnumbered<Event> = Event extends unknown ? Omit<Event, "sequence_number"> : never;
export type UnnumberedEvent = Unnumbered<ResponsesStreamEvent>;

export class ResponseWriter extends FrameWriter {
  #state: "before" | "begun" | "over" = "before";
  #sequence = 0;
  /** The object at the beginning. It is kept, because that of a long request is large. */
  #begunText: string | null = null;

  constructor(readonly begun: ResponseObject) {
    super();
  }

  start(): void {
    if (this.#state !== "before") return;
    this.#state = "begun";
    this.#writeBegun("response.created");
    this.#writeBegun("response.in_progress");
  }

  /** The first heartbeat begins the response, and the others say that it is still in progress. */
  heartbeat(): void {
    if (this.#state === "begun") this.#writeBegun("response.in_progress");
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
    this.write({ type: `response.${status}`, response });
    this.#state = "over";
    this.put({ data: "[DONE]" });
  }

  #writeBegun(type: "response.created" | "response.in_progress"): void {
    this.#begunText ??= JSON.stringify(this.begun);
    const data = `{"type":"${type}","response":${this.#begunText},"sequence_number":${this.#sequence++}}`;
    this.put({ event: type, data });
  }
}

/** The frame around the delta of such an event, up to its number. */
export function aroundNumbered(event: UnnumberedEvent): AroundDelta {
  const { before, after } = aroundDelta({ event: event.type, data: numberless(event) });
  return { before, after: after.trimEnd() };
}

function numberless(event: UnnumberedEvent): string {
  return `${JSON.stringify(event).slice(0, -1)},"sequence_number":`;
}

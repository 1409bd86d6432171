/**
 * Checks the arguments of an answer's tool calls while they are written. They are JSON inside JSON, and are parsed for
 * clients whose protocol has them as an object: docs/design/errors-and-streams.md, Answers that are bounded.
 */

import { BodyScan, type ShapeLimits } from "../body/scan.ts";
import type { InferenceEvent } from "../inference/event.ts";
import { assertReadable, unseen_bytes } from "./engine-json.ts";

/** The limits of arguments: depth and names for each call, values and members for all calls together. */
const argumentsLimits: ShapeLimits = {
  body_depth_max: 100,
  body_values_max: 100_000,
  body_members_max: 60_000,
  body_names_max: 10_000,
};

/**
 * Pieces of a call are checked together once they have this length, because checking a single token costs as much as
 * reading it.
 */
const looked_length = 4096;

interface Call {
  /** Arguments that have not been checked, as long as those of the whole answer are short. */
  unseen: string[];
  unseenLength: number;
  scan: BodyScan | null;
}

export class CallArguments {
  readonly #calls = new Map<number, Call>();
  #length = 0;
  #values = 0;
  #members = 0;

  /** Checks an event. Throws UnreadableAnswer. */
  take(event: InferenceEvent): void {
    if (event.type === "part-delta") this.#delta(event.index, event.delta);
    // The input of a custom tool is plain text, and is not checked.
    else if (event.type === "part-start" && event.part.kind === "tool-call" && !event.part.custom)
      this.#calls.set(event.index, { unseen: [], unseenLength: 0, scan: null });
    else if (event.type === "part-end") this.#end(event.index);
  }

  #end(index: number): void {
    const call = this.#calls.get(index);
    if (call && this.#length > unseen_bytes) this.#look(call);
    this.#calls.delete(index);
  }

  #delta(index: number, delta: string): void {
    if (this.#calls.size === 0) return;
    const call = this.#calls.get(index);
    if (!call) return;
    this.#length += delta.length;
    call.unseen.push(delta);
    call.unseenLength += delta.length;
    if (this.#length > unseen_bytes && call.unseenLength >= looked_length) this.#look(call);
  }

  #look(call: Call): void {
    call.unseenLength = 0;
    call.scan ??= new BodyScan();
    const { scan } = call;
    const [values, members] = [scan.values, scan.members];
    scan.take(Buffer.from(call.unseen.splice(0).join("")));
    this.#values += scan.values - values;
    this.#members += scan.members - members;
    const all = { bytes: this.#length, values: this.#values, members: this.#members };
    assertReadable({ ...all, depth: scan.depth, names: scan.names }, argumentsLimits);
  }
}

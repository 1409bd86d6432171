/** The count of one stream: the engine's report where it gives one, else deltas and code units (output-calibration.ts). */
import type { InferenceEvent } from "../inference/event.ts";
import type { Usage } from "../inference/usage.ts";
import type { OutputCalibration } from "./output-calibration.ts";

export function tally(of: { model: string; inputTokensEstimate: number; calibration: OutputCalibration }) {
  let parts = 0;
  let deltas = 0;
  let codeUnits = 0;
  let reasoningDeltas = 0;
  const open = new Set<number>();
  const reasoningParts = new Set<number>();
  let report: Usage | null = null;
  let finished = false;
  /** Whether output came after the last report: engines report at their start, and some never again. */
  let outgrown = false;

  const isFinal = () => report !== null && finished && !outgrown;
  const counted = (moreDeltas = 0, moreCodeUnits = 0) =>
    of.calibration.tokens(of.model, deltas + moreDeltas, codeUnits + moreCodeUnits);
  const outputTokens = () =>
    report && isFinal() ? report.outputTokens : Math.max(report?.outputTokens ?? 0, counted());

  return {
    /** Whether the engine has reported all that it has produced. */
    get reported() {
      return report !== null && !outgrown;
    },
    get anyPart() {
      return parts > 0;
    },
    get anyOutput() {
      return deltas > 0;
    },

    producesOutput: (batch: readonly InferenceEvent[]) => batch.some((event) => event.type === "part-delta"),

    /** What the count would be with this batch. */
    outputTokensWith(batch: readonly InferenceEvent[]): number {
      let moreDeltas = 0;
      let moreCodeUnits = 0;
      let said = report?.outputTokens ?? 0;
      let isLast = !outgrown;
      for (const event of batch) {
        if (event.type === "part-delta") {
          moreDeltas += 1;
          moreCodeUnits += event.delta.length;
          isLast = false;
        } else if (event.type === "usage") {
          said = event.usage.outputTokens;
          isLast = true;
        } else if (event.type === "response-end" && said > 0 && isLast) return said;
      }
      return Math.max(said, counted(moreDeltas, moreCodeUnits));
    },

    /** Counts a batch; answers the event that ends the stream, where the batch holds it. */
    add(batch: readonly InferenceEvent[]): InferenceEvent | undefined {
      for (const event of batch) {
        switch (event.type) {
          case "part-delta":
            deltas += 1;
            codeUnits += event.delta.length;
            outgrown = report !== null;
            if (reasoningParts.has(event.index)) reasoningDeltas += 1;
            break;
          case "part-start":
            parts += 1;
            open.add(event.index);
            if (event.part.kind === "reasoning") reasoningParts.add(event.index);
            break;
          case "part-end":
            open.delete(event.index);
            break;
          case "usage":
            report = event.usage;
            outgrown = false;
            break;
          case "response-end":
            finished = true;
            return event;
          case "response-failed":
            return event;
        }
      }
      return undefined;
    },

    usage(): Usage {
      if (report && isFinal()) return report;
      const output = outputTokens();
      return {
        inputTokens: report?.inputTokens ?? of.inputTokensEstimate,
        cachedInputTokens: report?.cachedInputTokens ?? 0,
        cacheWriteTokens: report?.cacheWriteTokens ?? 0,
        outputTokens: output,
        reasoningTokens: Math.min(Math.max(report?.reasoningTokens ?? 0, reasoningDeltas), output),
        source: output > 0 && output === deltas ? "counted" : "estimated",
      };
    },

    /** The end that a window sets: grammatical, with what was forwarded until now. */
    cutShort(): InferenceEvent[] {
      const parts = [...open].map((index): InferenceEvent => ({ type: "part-end", index }));
      return [...parts, { type: "usage", usage: this.usage() }, { type: "response-end", reason: "length" }];
    },

    /** Teaches the calibration what a whole stream held. Reasoning that nobody saw has neither deltas nor code units. */
    calibrate(): void {
      if (!report || !isFinal()) return;
      const unseen = reasoningDeltas === 0 ? report.reasoningTokens : 0;
      of.calibration.observe(of.model, { tokens: report.outputTokens - unseen, deltas, codeUnits });
    },
  };
}

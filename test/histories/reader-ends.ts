// The endings that a reader appends to an answer whose log has no end. Each has a different text, so that a test can
// tell them apart.

import type { Fault } from "../../src/core/inference/fault.ts";
import { gone, neverBegun } from "../../src/features/responses/current-response.ts";
import { answerLost, type StreamEnding } from "../../src/features/responses/needs.ts";

/**
 * The endings for an answer whose node is gone, for one that its node had settled, for one whose log is incomplete, and
 * for one that never began.
 */
export const readerEnds = { dead: "gone;", cut: "cut;", lost: "lost;", refused: "refused;" } as const;

export const readerEnding: StreamEnding = {
  saw() {},
  end({ code, message }: Fault): string {
    if (code === answerLost().code) return readerEnds.lost;
    if (message === neverBegun().message) return readerEnds.refused;
    return message === gone().message ? readerEnds.dead : readerEnds.cut;
  },
};

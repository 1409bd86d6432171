/** An inference request in the gateway's internal format that has one user message only. */
import type { InferenceRequest } from "../../src/core/inference/request.ts";

export function saying(text: string, more: Partial<InferenceRequest> = {}): InferenceRequest {
  return {
    model: "acme/m",
    stream: true,
    turns: [{ role: "user", parts: [{ kind: "text", text }] }],
    tools: [],
    sampling: {},
    stop: [],
    extra: {},
    needs: [],
    ...more,
  };
}

/** A request in the gateway's own form with one message of a user, and nothing else. */
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

/** A request in the gateway's own form that says one thing and asks for nothing else. */
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

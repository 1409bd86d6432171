/** A feature that no engine of a model can express is refused before the request is admitted. */
import { expect, test } from "bun:test";
import { Fault } from "../../../src/core/inference/fault.ts";
import type { InferenceRequest } from "../../../src/core/inference/request.ts";
import { assertCapable } from "../../../src/core/routing/catalog.ts";
import { Cancellation } from "../../../src/core/time/cancellation.ts";
import type { UpstreamProtocol } from "../../../src/core/upstream/codecs.ts";
import { Attempts } from "../../../src/core/usage/attempts.ts";
import { faultOf } from "../../harness/faults.ts";
import { attemptsParts, recordOf } from "../../harness/patience.ts";
import { saying } from "../../harness/request.ts";
import { attempting } from "../usage/attempting.ts";
import { modelOf, routeTo, upstreamOf } from "./models.ts";

const model = (...protocols: UpstreamProtocol[]) =>
  modelOf(protocols.map((protocol) => routeTo(upstreamOf("http://127.0.0.1:1", { name: protocol, protocol }))));

const request = saying("", { stream: false, turns: [] });
const cited: Partial<InferenceRequest> = {
  nativeNeeds: [{ protocol: "anthropic-messages", feature: "citations", param: "messages[0].content[0].citations" }],
};

function verdict(more: Partial<InferenceRequest>, ...protocols: UpstreamProtocol[]): string {
  const only = model(...protocols);
  const fault = faultOf(() => assertCapable(only, { ...request, ...more }));
  return fault ? `${fault.code} ${fault.details.param}` : only.id;
}

test("citations need an engine that speaks Messages", () => {
  expect(verdict(cited, "openai-chat")).toBe("unsupported_feature messages[0].content[0].citations");
  expect(verdict(cited, "anthropic-messages")).toBe("acme/m");
});

test("penalties need one that does not", () => {
  const penalized = { sampling: { presencePenalty: 1 } };
  expect(verdict(penalized, "anthropic-messages")).toBe("unsupported_feature presence_penalty");
  expect(verdict(penalized, "openai-chat")).toBe("acme/m");
});

test("of several engines the one that can be asked is asked, whatever the draw", async () => {
  expect(verdict(cited, "openai-chat", "anthropic-messages")).toBe("acme/m");
  const two = model("openai-chat", "anthropic-messages");
  for (const cacheKey of ["a", "b", "c", "d", "e", "f"]) {
    const leaving = new Cancellation();
    const asked = recordOf(two, { ...request, ...cited, cacheKey });
    const opened = new Attempts(attemptsParts(), attempting(asked, { signal: leaving }));
    const first = opened.events.next();
    leaving.abort(new Fault("draining", "The service is restarting."));
    await first;
    expect(opened.progress.route?.upstream.protocol).toBe("anthropic-messages");
  }
});

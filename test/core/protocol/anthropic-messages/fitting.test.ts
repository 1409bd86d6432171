/**
 * Requests of chat and Responses clients for Anthropic's API: what it has rules about, and those clients' own services do
 * not, is fitted to its rules. A request of its own clients stays as it is.
 */
import { describe, expect, test } from "bun:test";
import type { InferenceRequest } from "../../../../src/core/inference/request.ts";
import type { Loss } from "../../../../src/core/protocol/codec.ts";
import { type DialectName, dialects } from "../../../../src/core/protocol/dialects.ts";
import { callers, upstreams } from "../codecs.ts";

type Body = Record<string, unknown>;
type Message = { role: string; content: { text: string }[] };

const model = "acme/one";
const hi = [{ role: "user", content: "hi" }];
const chat = (more: object) => callers.chat.request.decode({ model, messages: hi, ...more } as never);
const messages = (more: object) =>
  callers.messages.request.decode({ model, max_tokens: 100, messages: hi, ...more } as never);
const responses = (more: object) => callers.responses.request.decode({ model, input: "hi", ...more } as never);

function encoded(request: InferenceRequest, name: DialectName = "anthropic") {
  const lost: Loss[] = [];
  const ask = { model: "m", stream: false, outputTokens_max: 4096, dialect: dialects[name] };
  const body = upstreams.messages.request.encode(request, { ...ask, lost: (loss) => void lost.push(loss) });
  return { body: JSON.parse(JSON.stringify(body)) as Body, lost };
}

const says = (role: string, text: string) => ({ role, content: text });

describe("instructions inside a conversation", () => {
  const told = (roles: readonly string[]) => roles.map((role, at) => says(role, `${role} ${at}`));
  const sent = (request: InferenceRequest, name?: DialectName) =>
    (encoded(request, name).body.messages as Message[]).map(
      ({ role, content }) => `${role}: ${content.map(({ text }) => text).join(", ")}`,
    );
  const inside = "<system>\ndeveloper 2\n</system>";

  test("are marked text of the user, in their place: most of its models refuse them, and the others before a user", () => {
    const conversation = told(["user", "assistant", "developer", "user"]);
    const fits = ["user: user 0", "assistant: assistant 1", `user: ${inside}, user 3`];
    expect(sent(chat({ messages: conversation }))).toEqual(fits);
    const input = conversation.map((message) => ({ type: "message", ...message }));
    expect(sent(responses({ input }))).toEqual(fits);
    expect(sent(chat({ messages: told(["user", "user", "developer", "assistant", "user"]) }))).toEqual([
      `user: user 0, user 1, ${inside}`,
      "assistant: assistant 3",
      "user: user 4",
    ]);
    const { body } = encoded(chat({ messages: told(["developer", "user"]) }));
    expect(body.system).toBe("developer 0");
  });

  test("stay instructions at other engines, and those of a Messages client at any", () => {
    const conversation = told(["user", "assistant", "system", "user"]);
    const kept = ["user: user 0", "assistant: assistant 1", "system: system 2", "user: user 3"];
    expect(sent(chat({ messages: conversation }), "vllm")).toEqual(kept);
    for (const name of ["anthropic", "vllm"] as const)
      expect(sent(messages({ messages: conversation }), name)).toEqual(kept);
  });
});

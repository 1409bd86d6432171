/** The bench trusts no answer: in every protocol, an answer that is not what was asked for ends the run. */
import { afterAll, describe, expect, test } from "bun:test";
import { smallBody } from "../../bench/agent-body.ts";
import { type Expected, modelOf, type Protocol, pathOf, protocols, tagOf, wrong } from "../../bench/speed/asks.ts";
import { pool } from "../../bench/speed/client.ts";
import { startEngine } from "../../bench/speed/engine.ts";

const engine = startEngine();
const connections = pool(`http://127.0.0.1:${engine.port}`);
afterAll(async () => {
  connections.close();
  await engine.stop(true);
});

const behaviour = { wait_ms: 0, tokens: 6, every_ms: 1, inputTokens: 20 };
const tag = tagOf(7);

async function answered(protocol: Protocol, isStreamed: boolean): Promise<string> {
  const body = smallBody(`Say hello to ${tag}.`, { protocol, model: modelOf(behaviour), isStreamed, cap: null });
  const headers = { "content-type": "application/json" };
  const reply = await connections.ask({ method: "POST", path: pathOf[protocol], headers, body, mark: tag });
  expect(reply.status).toBe(200);
  expect(reply.marked_ms).toBeLessThanOrEqual(reply.total_ms);
  return reply.body;
}

/** Answers that the bench must refuse, by what is wrong with them. `end` marks the last frames of a stream. */
function broken(body: string, protocol: Protocol, isStreamed: boolean): Record<string, string> {
  const frames = body.split(/(?<=\n\n)/);
  const tokenAt = frames.findIndex((frame) => frame.includes('" word"'));
  const end = { chat: "data: [DONE]", messages: "event: message_stop", responses: "event: response.completed" }[
    protocol
  ];
  const whole = {
    "another's answer": body.replaceAll(tag, tagOf(8)),
    "a token less": body.replaceAll(" word word word word word", " word word word word"),
    "a token more in the report": body.replace(/("(?:completion|output)_tokens":)6/, "$17"),
    "another end": body.replace(/"stop"|"end_turn"|"completed"/, '"other"'),
    "a cut body": body.slice(0, -1),
  };
  if (!isStreamed) return whole;
  return {
    "another's answer": whole["another's answer"],
    "a token less": frames.toSpliced(tokenAt, 1).join(""),
    "a token twice": frames.toSpliced(tokenAt, 0, frames[tokenAt]!).join(""),
    "a token more in the report": body.replace(
      /("(?:completion|output)_tokens":)6(?!.*"(?:completion|output)_tokens":6)/s,
      "$17",
    ),
    "no end": frames.filter((frame) => !frame.startsWith(end)).join(""),
    "two ends": body + frames.find((frame) => frame.startsWith(end))!,
    "a cut body": body.slice(0, -1),
  };
}

describe.each([...protocols])("%s", (protocol) => {
  test.each([false, true])("only the answer itself is right (streamed: %p)", async (isStreamed) => {
    const body = await answered(protocol, isStreamed);
    const expected: Expected = { protocol, isStreamed, tag, behaviour };
    expect(wrong(body, expected)).toBeNull();
    for (const [name, other] of Object.entries(broken(body, protocol, isStreamed))) {
      expect({ name, isOther: other !== body, complaint: wrong(other, expected) }).toEqual({
        ...{ name, isOther: true },
        complaint: expect.any(String),
      });
    }
  });
});

import { afterAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { tokens } from "../../../src/features/simulator/text.ts";
import { startSimulator } from "../../harness/simulator.ts";
import { gathered, said, streamed, tools, type Wire, whole } from "./ask.ts";

const simulator = await startSimulator();
afterAll(() => simulator.stop());

/** Sends the same request with and without streaming, and parses both responses into the same form. */
async function both(body: object) {
  const reply = await whole(simulator, body);
  const stream = await streamed(simulator, { ...body, stream_options: { include_usage: true } });
  return { reply, stream, choice: reply.choices[0], gathered: gathered(stream.chunks) };
}

describe("what it says", () => {
  test("it names itself, the requested model and the question", async () => {
    const { choices } = await whole(simulator, said("Where does the river go?"));
    const { content } = choices[0].message;
    expect(content).toStartWith("This is the Sluice simulator answering as “acme/writer-1”.");
    expect(content).toContain("You said: “Where does the river go?”");
    expect(content).not.toContain("I was given");
  });

  test("the same question has the same answer, another has another", async () => {
    const [one, same, other] = await Promise.all(["a", "a", "b"].map((text) => whole(simulator, said(text))));
    expect(one.choices).toEqual(same.choices);
    expect(one.id).toBe(same.id);
    expect(one.id).not.toBe(other.id);
    expect(one.choices[0].message.content).not.toBe(other.choices[0].message.content);
  });

  test("a long text is shortened, never in the middle of a character; directives are left out", async () => {
    const { choices } = await whole(simulator, said(`${"🌊".repeat(300)} [simulator: tokens=400]`));
    expect(choices[0].message.content).toContain(`You said: “${"🌊".repeat(200)}…”`);
    expect(choices[0].message.content).not.toContain("[simulator");
  });

  test("images and files are counted", async () => {
    const image = { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } };
    const content = [{ type: "text", text: "Look" }, image, image, { type: "file", file: { file_data: "x" } }];
    const { choices, usage } = await whole(simulator, { messages: [{ role: "user", content }] });
    expect(choices[0].message.content).toContain("I was given 2 image(s). I was given 1 file(s).");
    expect(usage.prompt_tokens).toBe(3 + 4 + 1 + 3 * 85);
  });

  test("echo answers with the text itself", async () => {
    const text = 'Ω "quoted" \\ \n\t 👩‍🔧 end';
    const { reply, gathered } = await both(said(`${text} [simulator: echo]`));
    expect(reply.choices[0].message.content).toBe(text);
    expect(gathered.content).toBe(text);
  });

  for (const [wanted, begins] of [
    [3, "one two three"],
    [5000, "one two three four "],
  ] as const)
    test(`an echo of ${wanted} tokens begins with the text and is as long as was asked`, async () => {
      const { choice, reply, gathered } = await both(said(`one two three four [simulator: echo tokens=${wanted}]`));
      expect(reply.usage.completion_tokens).toBe(wanted);
      expect(tokens(choice.message.content)).toHaveLength(wanted);
      expect(choice.message.content).toStartWith(begins);
      expect(gathered.content).toBe(choice.message.content);
    });

  test("a refusal stands in its own field", async () => {
    const { choice, gathered } = await both(said("[simulator: refusal]"));
    expect(choice.message).toMatchObject({ content: null, refusal: expect.stringContaining("simulator") });
    expect(gathered).toMatchObject({ content: null, refusal: choice.message.refusal, finish: "stop" });
  });
});

describe("streamed or not, it is one answer", () => {
  const body = fc.record(
    {
      text: fc.string({ unit: "grapheme", maxLength: 40 }),
      cue: fc.constantFrom(
        "",
        "calls=2",
        "call=get_time",
        "tokens=7",
        "per-chunk=3",
        "text-with-calls calls=1",
        "echo",
        "echo tokens=7",
      ),
      max_tokens: fc.integer({ min: 1, max: 60 }),
      stop: fc.constantFrom("gate", ["the", "water"], " "),
      n: fc.integer({ min: 1, max: 3 }),
      reasoning_effort: fc.constantFrom("none", "minimal", "high"),
      tools: fc.constant(tools),
      parallel_tool_calls: fc.boolean(),
      logprobs: fc.boolean(),
      top_logprobs: fc.integer({ min: 0, max: 20 }),
      response_format: fc.constantFrom({ type: "text" }, { type: "json_object" }),
    },
    { requiredKeys: ["text", "cue"] },
  );

  test("with the same text, calls, logprobs, finish and usage", async () => {
    await fc.assert(
      fc.asyncProperty(body, async ({ text, cue, ...rest }) => {
        const { reply, stream } = await both({ ...said(`${text} [simulator: ${cue}]`), ...rest });
        for (const choice of reply.choices) {
          const { message, logprobs } = choice;
          expect(gathered(stream.chunks, choice.index)).toEqual({
            content: message.content,
            reasoning: message.reasoning_content ?? null,
            refusal: null,
            calls: (message.tool_calls ?? []).map((call: Wire) => ({ id: call.id, ...call.function })),
            finish: choice.finish_reason,
            logprobs: logprobs?.content ?? [],
            usage: reply.usage,
          });
        }
        expect(stream.data.at(-1)).toBe("[DONE]");
        expect(new Set(stream.chunks.map((chunk) => chunk.id))).toEqual(new Set([reply.id]));
        expect(reply.usage.total_tokens).toBe(reply.usage.prompt_tokens + reply.usage.completion_tokens);
        const finishes = stream.chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.finish_reason);
        expect(finishes).toHaveLength(reply.choices.length);
      }),
      { numRuns: 60 },
    );
  });
});

describe("limits", () => {
  test("each output token is one chunk, and usage counts them", async () => {
    const { stream, reply, gathered } = await both(said("[simulator: tokens=25]"));
    const contents = stream.chunks.flatMap((chunk) => chunk.choices).filter((choice) => choice.delta.content);
    expect(contents).toHaveLength(25);
    expect(reply.usage.completion_tokens).toBe(25);
    expect(tokens(gathered.content)).toHaveLength(25);
  });

  test.each([{ max_tokens: 5 }, { max_completion_tokens: 5 }, { max_tokens: 900, max_completion_tokens: 5 }])(
    "a cap ends it with length: %p",
    async (cap) => {
      const { choice, reply } = await both({ ...said("x"), ...cap });
      expect(choice.finish_reason).toBe("length");
      expect(reply.usage.completion_tokens).toBe(5);
      expect(tokens(choice.message.content)).toHaveLength(5);
    },
  );

  test("a cap that is just enough ends it with stop", async () => {
    const { choice } = await both({ ...said("[simulator: tokens=5]"), max_tokens: 5 });
    expect(choice.finish_reason).toBe("stop");
  });

  test("a cap counts reasoning, and cuts arguments", async () => {
    const reasoning = await both({ ...said("x"), reasoning_effort: "high", max_tokens: 10 });
    expect(reasoning.choice).toMatchObject({ finish_reason: "length", message: { content: "" } });
    expect(reasoning.reply.usage.completion_tokens_details.reasoning_tokens).toBe(10);
    const call = await both({ ...said("x"), tools, tool_choice: "required", max_tokens: 6 });
    expect(call.choice.finish_reason).toBe("length");
    expect(() => JSON.parse(call.choice.message.tool_calls[0].function.arguments)).toThrow();
  });

  test("the earliest stop sequence ends it and is left out, also across tokens", async () => {
    const { choice, reply } = await both({
      ...said("one two three [simulator: echo]"),
      stop: ["three", "o thr", "zzz"],
    });
    expect(choice).toMatchObject({ finish_reason: "stop", message: { content: "one tw" } });
    expect(reply.usage.completion_tokens).toBe(2);
  });

  test("no usage in a stream unless asked for; running usage where asked", async () => {
    const plain = await streamed(simulator, said("x"));
    expect(plain.chunks.every((chunk) => !("usage" in chunk) && chunk.choices.length === 1)).toBe(true);
    const stream_options = { include_usage: true, continuous_usage_stats: true };
    const running = await streamed(simulator, { ...said("[simulator: tokens=3]"), stream_options });
    const counts = running.chunks.map((chunk) => chunk.usage.completion_tokens);
    expect(counts).toEqual([0, 1, 2, 3, 3, 3]);
  });

  test("a directive has cached tokens reported, never more than there are", async () => {
    const { usage } = await whole(simulator, said("[simulator: cached=5]"));
    expect(usage.prompt_tokens_details.cached_tokens).toBe(5);
    const all = await whole(simulator, said("[simulator: cached=5000]"));
    expect(all.usage.prompt_tokens_details.cached_tokens).toBe(all.usage.prompt_tokens);
  });
});

describe("reasoning", () => {
  test("comes first, by effort; none gives none", async () => {
    const { stream, gathered: got, reply } = await both({ ...said("x"), reasoning_effort: "low" });
    const kinds = stream.chunks.flatMap((chunk) => Object.keys(chunk.choices[0]?.delta ?? {}));
    expect(kinds.lastIndexOf("reasoning_content")).toBeLessThan(kinds.indexOf("content", 2));
    expect(got.reasoning).toStartWith("The simulator pretends to think here.");
    expect(reply.usage.completion_tokens_details.reasoning_tokens).toBe(16);
    const none = await whole(simulator, { ...said("x"), reasoning_effort: "none" });
    expect(none.choices[0].message).not.toHaveProperty("reasoning_content");
    expect(none.usage.completion_tokens_details.reasoning_tokens).toBe(0);
  });
});

describe("tools", () => {
  const called = async (body: object) => {
    const { choices } = await whole(simulator, { tools, ...body });
    return (choices[0].message.tool_calls ?? []).map((call: Wire) => call.function.name);
  };

  test("are called when the choice demands it, or a directive asks for it, and else not", async () => {
    const one = { type: "function", function: { name: "get_time" } };
    expect(await called(said("x"))).toEqual([]);
    expect(await called({ ...said("x"), tool_choice: "required" })).toEqual(["get_weather"]);
    expect(await called({ ...said("x"), tool_choice: one })).toEqual(["get_time"]);
    expect(await called(said("[simulator: call=get_time]"))).toEqual(["get_time"]);
    expect(await called(said("[simulator: calls=2]"))).toEqual(["get_weather", "get_time"]);
    expect(await called(said("[simulator: call=get_time call=get_time]"))).toEqual(["get_time", "get_time"]);
    expect(await called({ ...said("[simulator: calls=2]"), parallel_tool_calls: false })).toEqual(["get_weather"]);
    expect(await called({ ...said("[simulator: calls=2]"), tool_choice: "none" })).toEqual([]);
    const allowed_tools = { mode: "required", tools: [one] };
    expect(await called({ ...said("x"), tool_choice: { type: "allowed_tools", allowed_tools } })).toEqual(["get_time"]);
    expect(await called({ ...said("[simulator: calls=2]"), tools: [] })).toEqual([]);
  });

  test("arguments satisfy the schema, ids differ, also from those of the next turn", async () => {
    const first = await whole(simulator, { ...said("[simulator: calls=2]"), tools });
    const { message, finish_reason } = first.choices[0];
    expect(finish_reason).toBe("tool_calls");
    const { city, days } = JSON.parse(message.tool_calls[0].function.arguments);
    expect(typeof city).toBe("string");
    expect(days).toBeWithin(1, 8);
    const given = '{"zone": "UTC"}';
    const cued = await whole(simulator, { ...said(`[simulator: call=get_time:${btoa(given)}]`), tools });
    expect(cued.choices[0].message.tool_calls[0].function.arguments).toBe(given);
    const again = [...said("x").messages, message, { role: "user", content: "more [simulator: calls=2]" }];
    const second = await whole(simulator, { messages: again, tools });
    const ids = [first, second].flatMap((reply) => reply.choices[0].message.tool_calls.map((call: Wire) => call.id));
    expect(new Set(ids).size).toBe(4);
  });

  test("results are repeated in a text, though the directive is still in the history", async () => {
    const question = said("[simulator: calls=2]").messages;
    const { choices } = await whole(simulator, { messages: question, tools });
    const results = choices[0].message.tool_calls.map((call: Wire, index: number) => {
      return { role: "tool", tool_call_id: call.id, content: `result ${index}` };
    });
    const reply = await whole(simulator, { messages: [...question, choices[0].message, ...results], tools });
    const { content, tool_calls } = reply.choices[0].message;
    expect(tool_calls).toBeUndefined();
    expect(content).toContain("The tool get_weather said: “result 0”. The tool get_time said: “result 1”.");
  });
});

describe("structured output", () => {
  test("json_object is an object, json_schema satisfies its schema", async () => {
    const object = await whole(simulator, { ...said("x"), response_format: { type: "json_object" } });
    expect(JSON.parse(object.choices[0].message.content)).toMatchObject({ question: "x" });
    const schema = { type: "object", properties: { n: { type: "integer", minimum: 5, maximum: 5 } }, required: ["n"] };
    const format = { type: "json_schema", json_schema: { name: "n", strict: true, schema } };
    const reply = await whole(simulator, { ...said("x"), response_format: format });
    expect(JSON.parse(reply.choices[0].message.content)).toEqual({ n: 5 });
  });
});

test("logprobs: one for each text token, its bytes, and as many alternatives as asked for, itself first", async () => {
  const reply = await whole(simulator, { ...said("[simulator: tokens=9]"), logprobs: true, top_logprobs: 20 });
  const { message, logprobs } = reply.choices[0];
  expect(logprobs.content.map((each: Wire) => each.token).join("")).toBe(message.content);
  for (const each of logprobs.content) {
    expect(each.bytes).toEqual([...new TextEncoder().encode(each.token)]);
    expect(each.logprob).toBeLessThanOrEqual(0);
    expect(each.top_logprobs).toHaveLength(20);
    expect(each.top_logprobs[0].token).toBe(each.token);
    expect(new Set(each.top_logprobs.map((top: Wire) => top.token)).size).toBe(20);
  }
});

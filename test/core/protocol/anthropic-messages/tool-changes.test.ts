/**
 * Changes within a conversation: tools that it adds and removes, efforts that it sets, and instructions that end with
 * their turn.
 */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeRequest } from "../../../../src/core/protocol/anthropic-messages/decode-request.ts";
import { validateCountTokens } from "../../../../src/core/protocol/anthropic-messages/validate.ts";
import { busyness } from "../../../harness/busyness.ts";
import { faultOf } from "../../../harness/faults.ts";
import { callers, upstreams, validated } from "../codecs.ts";
import { forAll } from "../for-all.ts";

const ask = { model: "engine", stream: true, outputTokens_max: 4096 };
const user = { role: "user", content: "Hello" };
const base = { model: "acme/writer-1", max_tokens: 100, messages: [user] };
const tool = (name: string, more: object = {}) => ({ name, input_schema: { type: "object" }, ...more });
const system = (...content: unknown[]) => ({ role: "system", content });
const named = (name: string) => ({ type: "tool_reference", name });
const adds = (name: string) => ({ type: "tool_addition", tool: named(name) });
const removes = (name: string) => ({ type: "tool_removal", tool: named(name) });
const defines = (definition: object) => ({ type: "tool_addition", tool: { type: "tool_definition", definition } });
const says = (...messages: unknown[]) => ({ messages: [user, ...messages] });

const centre = (body: object) => callers.messages.request.decode(validated.messages({ ...base, ...body }));
const namesOf = (body: object) => centre(body).tools.map(({ name }) => name);

const refusalOf = (body: object) => faultOf(() => validated.messages({ ...base, ...body }))!;
const told = (body: object) => {
  const { code, details } = refusalOf(body);
  return `${code} ${details.param}`;
};

describe("the tools in force", () => {
  const listed = { tools: [tool("f"), tool("g"), tool("h", { defer_loading: true })] };

  test("are with those that were added, in the order of the conversation", () => {
    expect(
      namesOf({ ...listed, ...says(system(removes("f"), adds("h")), user, system(adds("f"), removes("g"))) }),
    ).toEqual(["f", "h"]);
    expect(namesOf(says(system(defines(tool("new")))))).toEqual(["new"]);
  });

  test("have the definition that was given last", () => {
    const { tools } = centre({
      ...listed,
      ...says(
        system(defines(tool("f", { description: "Old." }))),
        user,
        system(defines(tool("f", { description: "New." }))),
      ),
    });
    expect(tools.map(({ name, description }) => [name, description])).toEqual([
      ["f", "New."],
      ["g", undefined],
      ["h", undefined],
    ]);
  });

  test("reach every engine, which sees nothing of the changes but their result", () => {
    const request = centre({
      ...listed,
      ...says(system({ type: "text", text: "NOTE" }, removes("f"), defines(tool("new")))),
    });
    for (const upstream of Object.values(upstreams)) {
      const asked = JSON.stringify(upstream.request.encode(request, ask));
      expect(asked).toMatch(/"name":"g".*"name":"h".*"name":"new"/);
      expect(asked).toContain("NOTE");
      expect(asked).not.toMatch(/"name":"f"|tool_addition|tool_removal/);
    }
  });

  test("leave no turn behind where a message does nothing but change them", () =>
    expect(centre({ ...listed, ...says(system(removes("f"))) }).turns).toEqual([
      { role: "user", parts: [{ kind: "text", text: "Hello" }] },
    ]));

  test("are counted, and what cannot be changed does not stop a count", () => {
    const count = (body: object) =>
      decodeRequest(validateCountTokens({ model: "a/b", messages: [user], ...body })).tools;
    expect(count({ ...listed, ...says(system(removes("f"))) }).map(({ name }) => name)).toEqual(["g", "h"]);
    expect(count({ ...listed, ...says(system(removes("nobody"), adds("nobody"))) }).length).toBe(3);
  });

  test("are for every history what one change after the other makes of them", () => {
    const names = ["f", "g", "new"];
    const change = fc.record({ name: fc.constantFrom(...names), kind: fc.constantFrom("add", "remove", "define") });
    forAll([fc.array(fc.array(change, { maxLength: 3 }), { maxLength: 5 })], 200, (history) => {
      const offered = new Map([
        ["f", true],
        ["g", true],
      ]);
      const messages: object[] = [];
      for (const turn of history) {
        const possible = turn.filter(({ name, kind }) => {
          if (kind !== "define" && !offered.has(name)) return false;
          offered.set(name, kind !== "remove");
          return true;
        });
        const blocks = possible.map(({ name, kind }) =>
          kind === "define" ? defines(tool(name)) : kind === "add" ? adds(name) : removes(name),
        );
        messages.push(system(...blocks), user);
      }
      const wanted = [...offered].flatMap(([name, isOffered]) => (isOffered ? [name] : []));
      expect(namesOf({ tools: [tool("f"), tool("g")], ...says(...messages) })).toEqual(wanted);
    });
  });

  test("are found in ten thousand changes of ten thousand tools without delay", () => {
    const many = Array.from({ length: 10_000 }, (_, at) => `t${at}`);
    const started = performance.now();
    const left = namesOf({ tools: many.map((name) => tool(name)), ...says(system(...many.slice(1).map(removes))) });
    expect(left).toEqual(["t0"]);
    expect(performance.now() - started).toBeLessThan(2000 * busyness());
  });
});

describe("a change that cannot be made is told with its field", () => {
  const one = { tools: [tool("f")] };
  const refused: Record<string, [body: object, told: string]> = {
    "a removal of what is nowhere": [
      { ...one, ...says(system(removes("x"))) },
      "invalid_value messages[1].content[0].tool.name",
    ],
    "an addition of what is nowhere": [
      { ...one, ...says(system(adds("x"))) },
      "invalid_value messages[1].content[0].tool.name",
    ],
    "a reference before its definition": [
      says(system(removes("f")), user, system(defines(tool("f")))),
      "invalid_value messages[1].content[0].tool.name",
    ],
    "the name of a tool of another type": [
      { tools: [tool("bash")], ...says(system(defines({ type: "bash_20250124", name: "bash" }))) },
      "invalid_value messages[1].content[0].tool.definition.name",
    ],
    "a choice of what was removed": [
      { tools: [tool("f"), tool("g")], tool_choice: { type: "tool", name: "f" }, ...says(system(removes("f"))) },
      "invalid_value tool_choice.name",
    ],
    "a choice of any where none is left": [
      { ...one, tool_choice: { type: "any" }, ...says(system(removes("f"))) },
      "invalid_value tool_choice",
    ],
    "changes in a message that ends with its turn": [
      { ...one, ...says({ ...system(removes("f")), clear_at: "next_user_message" }) },
      "invalid_value messages[1].content[0].type",
    ],
    "an effort in a message that ends with its turn": [
      says({ role: "system", content: "a", clear_at: "next_user_message", output_config: { effort: "low" } }),
      "invalid_value messages[1].output_config",
    ],
    "nothing but changes": [{ ...one, messages: [system(removes("f"))] }, "invalid_value messages"],
    "a change in a user's turn": [
      { ...one, messages: [{ role: "user", content: [removes("f")] }] },
      "unsupported_feature messages[0].content[0].type",
    ],
    "a change in an assistant's turn": [
      { ...one, ...says({ role: "assistant", content: [adds("f")] }, user) },
      "unsupported_feature messages[1].content[0].type",
    ],
  };
  test.each(Object.entries(refused))("%s", (_, [body, wanted]) => expect(told(body)).toBe(wanted));

  /** For each change: the code of the refusal, and the path within the change. */
  const alone: Record<string, [change: object, told: string]> = {
    "a definition without a name": [defines({ input_schema: {} }), "missing_field tool.definition.name"],
    "a definition without a schema": [defines({ name: "f" }), "missing_field tool.definition.input_schema"],
    "a removal by definition": [
      { type: "tool_removal", tool: { type: "tool_definition", definition: tool("f") } },
      "invalid_value tool.type",
    ],
    "no tool at all": [{ type: "tool_addition" }, "missing_field tool"],
    "null for a tool": [{ type: "tool_removal", tool: null }, "invalid_value tool"],
    "a reference without a name": [
      { type: "tool_removal", tool: { type: "tool_reference" } },
      "missing_field tool.name",
    ],
    "a tool of a server": [
      { type: "tool_addition", tool: { type: "mcp_toolset_reference", server_name: "s" } },
      "unsupported_feature tool.type",
    ],
    "a hosted tool and nothing else": [
      defines({ type: "web_search_20250305", name: "web_search" }),
      "unsupported_feature tool.definition.type",
    ],
  };
  test.each(Object.entries(alone))("%s", (_, [change, wanted]) =>
    expect(told(says(system(change)))).toBe(wanted.replace(" ", " messages[1].content[0].")),
  );

  test("and names the type, which is what clients look for", () =>
    expect(refusalOf({ messages: [{ role: "user", content: [removes("f")] }] }).message).toContain("tool_removal"));

  test("a tool that was added may be chosen", () =>
    expect(
      centre({ tool_choice: { type: "tool", name: "new" }, ...says(system(defines(tool("new")))) }).toolChoice,
    ).toEqual({
      kind: "tool",
      name: "new",
    }));

  test("a hosted tool that is added beside others is left out", () =>
    expect(
      namesOf({ tools: [tool("f")], ...says(system(defines({ type: "web_search_20250305", name: "web_search" }))) }),
    ).toEqual(["f"]));

  test("the capability is asked for by the field that brings the tool", () =>
    expect(centre(says(system(defines(tool("new"))))).needs).toEqual([
      { capability: "tools", param: "messages[1].content[0].tool.definition" },
    ]));
});

describe("other things that a system message says of a conversation", () => {
  const sets = (effort: string) => ({ role: "system", content: [], output_config: { effort } });
  const effortOf = (body: object) => centre(body).reasoning?.effort;

  test("its effort holds from the user's next message on", () => {
    const asked = { output_config: { effort: "high" } };
    expect(effortOf({ ...asked, ...says(sets("low")) })).toBe("high");
    expect(effortOf({ ...asked, ...says(sets("low"), user) })).toBe("low");
    expect(effortOf({ ...asked, ...says(sets("low"), user, sets("max"), user, sets("medium")) })).toBe("max");
    expect(effortOf(says({ role: "system", output_config: { effort: "low" } }, user))).toBe("low");
  });

  test("thinking that is switched off wins over it", () =>
    expect(effortOf({ thinking: { type: "disabled" }, ...says(sets("low"), user) })).toBe("none"));

  test("a text that ends with its turn is gone once the user speaks again", () => {
    const reminder = { role: "system", content: "REMINDER", clear_at: "next_user_message" };
    const seen = (...messages: unknown[]) => JSON.stringify(centre(says(...messages)).turns).includes("REMINDER");
    expect(seen(reminder)).toBe(true);
    expect(seen(reminder, { role: "assistant", content: "Hm." })).toBe(true);
    expect(seen(reminder, { role: "assistant", content: "Hm." }, user)).toBe(false);
    expect(seen({ ...reminder, clear_at: "never" }, user)).toBe(true);
  });
});

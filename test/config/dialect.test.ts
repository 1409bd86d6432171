/**
 * `dialect` and `dialect_rows` of an upstream: requests to the engine follow the rows of its dialect, and the file's
 * own rows override them.
 */
import { describe, expect, test } from "bun:test";
import { type DialectName, dialectNames, dialects } from "../../src/core/protocol/dialects.ts";
import { configured, problemsOf } from "./reading.ts";

const file = (fields: string) => `upstreams: { main: { url: "http://127.0.0.1:9000/v1", ${fields} } }\n`;
const dialectIn = (fields: string) => configured(file(fields)).upstreams[0]?.dialect;

describe("the dialect of an upstream", () => {
  test.each(dialectNames)("%s is its row of the table", (name: DialectName) => {
    expect(dialectIn(`dialect: ${name}`)).toEqual(dialects[name]);
  });

  test("is generic where the file has none", () => {
    expect(dialectIn("api_key: x1")).toEqual(dialects.generic);
  });

  test("has the file's rows in place of its own, one by one", () => {
    const rows = `dialect_rows: { cap: max_completion_tokens, reasoning: [reasoning_content], effort: { max: xhigh, minimal: "" },
      finish_reasons: { done: stop }, stops_max: 16, tools_max: 9, load_waiting: [mine:waiting] }`;
    const { vllm } = dialects;
    expect(dialectIn(`dialect: vllm, ${rows}`)).toEqual({
      ...vllm,
      cap: "max_completion_tokens",
      reasoning: { ...vllm.reasoning, out: ["reasoning_content"] },
      effort: { ...vllm.effort, max: "xhigh", minimal: null },
      finishReasons: { ...vllm.finishReasons, done: "stop" },
      bounds: { ...vllm.bounds, stops_max: 16, tools_max: 9 },
      load: { ...vllm.load, waiting: ["mine:waiting"] },
    });
  });

  test("is one of the table, and its rows are of their kinds", () => {
    expect(problemsOf(file("dialect: vlm"))).toEqual([expect.stringContaining("upstreams.main.dialect")]);
    expect(problemsOf(file("dialect_rows: { cap: tokens }"))).toEqual([
      expect.stringContaining("upstreams.main.dialect_rows.cap"),
    ]);
    expect(problemsOf(file("dialect_rows: { effort: { max: Very High } }"))).toEqual([
      expect.stringContaining("upstreams.main.dialect_rows.effort.max"),
    ]);
  });
});

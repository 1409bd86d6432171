/** The dialect of an upstream of sluice.yaml: the rows of the named dialect, and those that the file replaces. */
import type { Dialect } from "../core/protocol/dialect.ts";
import { type DialectName, dialects } from "../core/protocol/dialects.ts";
import { compact } from "../core/protocol/json.ts";
import type { DialectRows } from "./settings/dialect.ts";

export function dialectOf(name: DialectName, rows: DialectRows = {}): Dialect {
  const base: Dialect = dialects[name];
  const effort = Object.entries(rows.effort ?? {}).map(([level, word]) => [level, word || null]);
  return {
    ...base,
    ...compact({
      unsignedThoughts: rows.unsigned_thoughts,
      cap: rows.cap,
      strips: rows.strips,
      schemas: rows.schemas,
      namedTool: rows.named_tool,
    }),
    reasoning: { ...base.reasoning, ...compact({ out: rows.reasoning }) },
    effort: { ...base.effort, ...Object.fromEntries(effort) },
    finishReasons: { ...base.finishReasons, ...rows.finish_reasons },
    bounds: {
      ...base.bounds,
      ...compact({
        tools_max: rows.tools_max,
        name_characters_max: rows.tool_name_characters_max,
        stops_max: rows.stops_max,
      }),
    },
    load: { ...base.load, ...compact({ waiting: rows.load_waiting, cache: rows.load_cache }) },
  };
}

/**
 * Leaves out the fields that the engine's dialect refuses. They tune caching and effort; the answer is the same without
 * them.
 */
import type { Loss } from "../codec.ts";
import type { Dialect } from "../dialect.ts";
import { isObject, type JsonObject } from "../json.ts";

/** The body without the fields in `strips`; the same object if it has none of them. */
export function stripped(body: JsonObject, { strips }: Dialect, lost?: (loss: Loss) => void): JsonObject {
  if (strips.length === 0) return body;
  const isMarkLeftOut = strips.includes("cache_control");
  const isTtlLeftOut = strips.includes("cache_control.ttl");
  const marked = isMarkLeftOut || isTtlLeftOut ? (withoutMarks(body, isMarkLeftOut) as JsonObject) : body;
  const left = strips.includes("output_config.effort") ? withoutEffort(marked) : marked;
  if (left !== body) lost?.("stripped");
  return left;
}

/**
 * The value without `cache_control` fields, or, if `whole` is false, without the `ttl` in these fields; the same value
 * if there are none.
 */
function withoutMarks(value: unknown, whole: boolean): unknown {
  if (Array.isArray(value)) {
    const items = value.map((item) => withoutMarks(item, whole));
    return items.some((item, at) => item !== value[at]) ? items : value;
  }
  if (!isObject(value)) return value;
  let changed: JsonObject | null = null;
  for (const [name, inner] of Object.entries(value)) {
    if (holdsNoMarks.has(name)) continue;
    const other = name === "cache_control" ? markWithout(inner, whole) : withoutMarks(inner, whole);
    if (other === inner) continue;
    changed ??= { ...value };
    changed[name] = other;
  }
  return changed ?? value;
}

/** Fields that hold the caller's own JSON: a field in it that is named `cache_control` is data. */
const holdsNoMarks: ReadonlySet<string> = new Set(["input", "input_schema", "schema", "source", "output_config"]);

function markWithout(mark: unknown, whole: boolean): unknown {
  if (whole) return undefined;
  if (!isObject(mark) || mark.ttl === undefined) return mark;
  const { ttl: _, ...rest } = mark;
  return rest;
}

function withoutEffort(body: JsonObject): JsonObject {
  if (!isObject(body.output_config) || body.output_config.effort === undefined) return body;
  const { effort: _, ...config } = body.output_config;
  return { ...body, output_config: Object.keys(config).length > 0 ? config : undefined };
}

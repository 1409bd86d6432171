/** Writes JSON Schema in the type notation in which the harmony format describes tools to a model. */
import { entryOf, isObject } from "../../core/protocol/json.ts";

type Schema = Record<string, unknown>;

const step = "    ";
/** Schemas may nest as deeply as a body. Levels deeper than this, which nobody would read, are written as `any`. */
const depth_max = 24;

/** The part of a tool's declaration between its name and its end: its arguments. */
export function argumentsOf(parameters: Schema): string {
  return `(_: {\n${fields(parameters, "", 0)}}) => any`;
}

function fields(schema: Schema, indent: string, depth: number): string {
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(isObject(schema.properties) ? schema.properties : {})
    .map(([name, value]) => field(name, isObject(value) ? value : {}, required.includes(name), indent, depth))
    .join("");
}

function field(name: string, schema: Schema, isRequired: boolean, indent: string, depth: number): string {
  const variants = Array.isArray(schema.oneOf);
  const head = heading(schema, indent);
  const own = variants ? comment(defaultOf(schema), indent) : "";
  const byDefault = defaultOf(schema);
  const tail = byDefault === "" || variants ? "" : ` // ${byDefault}`;
  return `${head}${own}${indent}${name}${isRequired ? "" : "?"}:${spaced(typeOf(schema, indent, depth))},${tail}\n`;
}

/** The type with a space before it, unless it begins on a line of its own. */
function spaced(type: string): string {
  return type.startsWith("\n") ? type : ` ${type}`;
}

function heading({ title, description, examples }: Schema, indent: string): string {
  const named = typeof title === "string" ? `${comment(title, indent)}${indent}//\n` : "";
  const examplesText =
    Array.isArray(examples) && examples.length > 0
      ? `${indent}//\n${comment("Examples:", indent)}${examples.map((one) => comment(`- ${JSON.stringify(one)}`, indent)).join("")}`
      : "";
  return named + (typeof description === "string" ? comment(description, indent) : "") + examplesText;
}

function comment(text: string, indent: string): string {
  return text === "" ? "" : `${indent}// ${text}\n`;
}

function defaultOf({ default: value, enum: values }: Schema): string {
  if (value === undefined) return "";
  return `default: ${typeof value === "string" && Array.isArray(values) ? value : JSON.stringify(value)}`;
}

function typeOf(schema: Schema, indent: string, depth: number): string {
  if (depth > depth_max) return "any";
  const { type, oneOf, items, nullable } = schema;
  const orNull = nullable === true ? " | null" : "";
  if (Array.isArray(oneOf)) return `${variantsOf(oneOf, indent, depth)}\n${indent}`;
  if (Array.isArray(type)) return type.map((one) => entryOf(scalars, String(one)) ?? String(one)).join(" | ");
  if (type === "array") return `${isObject(items) ? `${typeOf(items, indent, depth + 1)}[]` : "Array<any>"}${orNull}`;
  if (type === "object") {
    const about = typeof schema.description === "string" ? comment(schema.description, indent + step) : "";
    return `${about}{\n${fields(schema, indent + step, depth + 1)}${indent}${step}}${orNull}`;
  }
  if (type === "string" && Array.isArray(schema.enum))
    return schema.enum.map((value) => JSON.stringify(value)).join(" | ") + orNull;
  return typeof type === "string" && type !== "null" ? `${entryOf(scalars, type) ?? "any"}${orNull}` : "any";
}

const scalars: Record<string, string> = { string: "string", number: "number", integer: "number", boolean: "boolean" };

function variantsOf(variants: unknown[], indent: string, depth: number): string {
  return variants
    .map((variant) => {
      const schema = isObject(variant) ? variant : {};
      const remark = [schema.type === "object" ? "" : schema.description, defaultOf(schema)].filter(Boolean).join(" ");
      const type = typeOf({ ...schema, description: undefined }, `${indent} `, depth + 1);
      return `\n${indent} | ${type}${remark === "" ? "" : ` // ${remark}`}`;
    })
    .join("");
}

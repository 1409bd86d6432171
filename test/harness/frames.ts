/** Parses the frames of an event stream's body. */
import type { TSchema } from "typebox";
import { type Contract, contract } from "../../src/core/protocol/contract.ts";

/** Lists the problems of a value that a schema describes; the list is empty when the value satisfies the schema. */
export type Problems = (schema: TSchema, value: unknown) => string[];

/** The frames of the body, without comment frames. */
export function framesOf(body: string, problems: string[]): string[] {
  const frames = body.split("\n\n");
  if (frames.pop() !== "") problems.push("The stream does not end with a blank line.");
  return frames.filter((frame) => !frame.split("\n").every((line) => line.startsWith(":")));
}

/** The text of each data line of an event stream. */
export function dataIn(body: string): string[] {
  return body.split("\n\n").flatMap((frame) => /^data: (.*)$/m.exec(frame)?.slice(1) ?? []);
}

/**
 * The parsed data of a frame that consists of an event line and a data line; undefined if the frame has another shape.
 */
export function namedEvent<Event extends { type: string }>(frame: string, problems: string[]): Event | undefined {
  const [, name, text] = /^event: ([\w.-]+)\ndata: ([^\n]+)$/.exec(frame) ?? [];
  const value = parsed(text ?? "");
  if (typeof value !== "object" || value === null) {
    problems.push(`A frame is not an event line and a data line: ${frame.slice(0, 100)}`);
    return undefined;
  }
  const event = value as Event;
  if (event.type !== name) problems.push(`The event '${name}' holds a '${event.type}'.`);
  return event;
}

/** The value of a JSON text; undefined if the text is not JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Returns a checker that compiles each schema when it is first needed. */
export function schemaProblems(): Problems {
  const compiled = new Map<TSchema, Contract<unknown>>();
  return (schema, value) => {
    let shape = compiled.get(schema);
    if (!shape) {
      shape = contract(closed(schema) as TSchema) as Contract<unknown>;
      compiled.set(schema, shape);
    }
    return shape.satisfied(value) ? [] : [shape.violation(value).message];
  };
}

/** Returns the schema with one change: objects that do not mention additional fields forbid them. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== "object" || schema === null) return schema;
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closed(value)]));
  const isOpenObject = inner.type === "object" && "properties" in inner && !("additionalProperties" in inner);
  return isOpenObject ? { ...inner, additionalProperties: false } : inner;
}

// Requests for comparing two nodes: every operation of the two contracts with its examples, unchanged and with random
// faults. `{organization}`, `{key}`, `{operator}`, `{team}`, `{response}` and `{request}` stand for the IDs of the node
// that gets the request; `{credential}` for its key or its operator's token.

import management from "../../contract/management.json";
import openapi from "../../contract/openapi.json";
import type { Draw } from "./draw.ts";

export interface RawRequest {
  port: "api" | "operator";
  /** The request line and the headers, without `content-length`. */
  head: string[];
  body: string;
}

interface Operation {
  port: RawRequest["port"];
  method: string;
  path: string;
  bodies: string[];
  query: string[];
}

export const operations: Operation[] = [...operationsOf(openapi, "api"), ...operationsOf(management, "operator")];

function operationsOf(document: { paths: object }, port: RawRequest["port"]): Operation[] {
  const found: Operation[] = [];
  for (const [path, methods] of Object.entries(document.paths) as [string, Record<string, Documented>][]) {
    for (const [method, { parameters = [], requestBody }] of Object.entries(methods)) {
      const content = requestBody?.content["application/json"];
      const examples = content?.examples
        ? Object.values(content.examples).map(({ value }) => value)
        : [content?.example];
      found.push({
        port,
        method: method.toUpperCase(),
        path,
        bodies: content
          ? examples.map((example) =>
              JSON.stringify(example ?? {}).replace('"organization":"acme"', '"organization":"{organization}"'),
            )
          : [],
        query: parameters.filter((parameter) => parameter.in === "query").map(({ name }) => name),
      });
    }
  }
  return found;
}

interface Documented {
  parameters?: { name: string; in: string }[];
  requestBody?: { content: Record<string, { example?: unknown; examples?: Record<string, { value: unknown }> }> };
}

/** A request for each operation with each of its examples. */
export function plainRequests(draw: Draw): RawRequest[] {
  return operations.flatMap((operation) => {
    const bodies = operation.bodies.length > 0 ? operation.bodies : [""];
    return bodies.map((body) => request(operation, { target: targetOf(operation), body: withNewName(body, draw) }));
  });
}

/** A request with one to three random faults in its path, its head or its body. */
export function faultyRequest(draw: Draw): RawRequest {
  const operation = draw.one(operations);
  const parts: Parts = {
    target: targetOf(operation),
    body: operation.bodies.length > 0 ? draw.one(operation.bodies) : "",
  };
  for (let fault = draw.below(3); fault >= 0; fault--) draw.one(faults)(parts, operation, draw);
  return request(operation, parts);
}

interface Parts {
  target: string;
  body: string;
  method?: string;
  credential?: string | null;
  headers?: string[];
}

type FaultOf = (parts: Parts, operation: Operation, draw: Draw) => void;

const faultOfBody: FaultOf = (parts, { bodies }, draw) => {
  if (bodies.length === 0 && draw.below(8) > 0) return;
  parts.body = draw.below(4) === 0 ? brokenText(parts.body, draw) : brokenValue(parts.body, draw);
};

const faults: FaultOf[] = [
  faultOfBody,
  faultOfBody,
  faultOfBody,
  faultOfBody,
  (parts, { query }, draw) => {
    const name = query.length > 0 && draw.below(4) > 0 ? draw.one(query) : "unknown";
    const value = encodeURIComponent(draw.one(queryValues));
    parts.target += `${parts.target.includes("?") ? "&" : "?"}${name}=${value}`;
  },
  (parts, _, draw) => {
    parts.target = parts.target.replace(
      /\{\w+\}/,
      draw.one(["nobody", "%00", "a%2Fb", "", "x".repeat(300), "%zz", "ÿ"]),
    );
  },
  (parts, _, draw) => {
    parts.method = draw.one(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW"]);
  },
  (parts, _, draw) => {
    parts.credential = draw.one([
      null,
      "Bearer ",
      "Bearer slk_nobody",
      "Basic YTpi",
      "{credential}",
      "Bearer {credential} x",
    ]);
  },
  (parts, _, draw) => {
    parts.headers = [...(parts.headers ?? []), draw.one(headers)];
  },
  (parts, _, draw) => {
    parts.target = draw.one([
      `${parts.target}/`,
      `/${parts.target}`,
      parts.target.toUpperCase(),
      `${parts.target}%20`,
      "/v1",
      "*",
    ]);
  },
];

const queryValues = [
  "",
  "0",
  "1",
  "-1",
  "1.5",
  "1001",
  "all",
  "acme",
  "2026-01-01",
  "yesterday",
  "x".repeat(2000),
  "\u0000",
  "null",
];

const headers = [
  "content-type: text/plain",
  "content-type: application/json; charset=utf-16",
  "content-type:",
  "content-encoding: gzip",
  "content-encoding: rot13",
  "accept: text/html",
  "accept: text/event-stream",
  "if-match: *",
  'if-match: "1"',
  'if-match: "999"',
  "idempotency-key: again",
  `idempotency-key: ${"k".repeat(300)}`,
  "anthropic-version: 2023-06-01",
  "anthropic-version: 1999",
  "anthropic-beta: context-management-2025-06-27",
  "x-api-key: slk_nobody",
  "x-request-id: mine",
  "x-forwarded-for: 10.0.0.1",
  "expect: 100-continue",
  "transfer-encoding: identity",
  "origin: https://example.com",
];

const values: readonly unknown[] = [
  ...[null, true, false, 0, 1, -1, 0.5, 1e21, 2 ** 53],
  ...["", "x", "auto", "none", "acme", "\u0000", "x".repeat(5000), "2026-12-01", "1h", "https://10.0.0.1/"],
  ...[[], [null], [{}], ["x", "x"], {}, { type: "text" }, { type: "nothing" }, { limits: { week: 1 } }],
];

const names = [
  "unknown",
  "stream",
  "model",
  "tools",
  "tool_choice",
  "store",
  "limits",
  "nanos",
  "reason",
  "__proto__",
  "name",
  "type",
];

/** Returns the JSON text with one of its values removed, replaced or duplicated, or with an additional value. */
function brokenValue(body: string, draw: Draw): string {
  let root: unknown;
  try {
    root = JSON.parse(body || "{}");
  } catch {
    return body;
  }
  const places: { within: Record<string, unknown> | unknown[]; name: string }[] = [];
  const visit = (within: unknown): void => {
    if (typeof within !== "object" || within === null) return;
    for (const name of Object.keys(within)) {
      places.push({ within: within as Record<string, unknown>, name });
      visit((within as Record<string, unknown>)[name]);
    }
  };
  visit(root);
  if (places.length === 0 || draw.below(8) === 0) return JSON.stringify(draw.one(values));
  const { within, name } = draw.one(places);
  const record = within as Record<string, unknown>;
  switch (draw.below(4)) {
    case 0:
      if (Array.isArray(within)) within.splice(Number(name), 1);
      else delete record[name];
      break;
    case 1:
      if (Array.isArray(within)) within.push(structuredClone(within[Number(name)]));
      else
        Object.defineProperty(record, draw.one(names), {
          value: draw.one(values),
          enumerable: true,
          configurable: true,
          writable: true,
        });
      break;
    default:
      record[name] = structuredClone(draw.one(values));
  }
  return JSON.stringify(root);
}

function brokenText(body: string, draw: Draw): string {
  const at = draw.below(body.length + 1);
  return draw.one([
    "",
    body.slice(0, at),
    `${body.slice(0, at)},${body.slice(at)}`,
    `${body}${body}`,
    `\ufeff${body}`,
    `${body.slice(0, at)}\u0000${body.slice(at)}`,
    "[".repeat(2000),
    body.replace(/"(\w+)":/, (member) => `${member}1,${member}`),
  ]);
}

/** Gives a new organization, team or plan another name, because slugs and names must be unique. */
function withNewName(body: string, draw: Draw): string {
  return body.replace(
    /"(slug|name)":"(acme|gold|research)"/,
    (_, field, name) => `"${field}":"${name}-${draw.below(1000)}"`,
  );
}

function targetOf({ path }: Operation): string {
  if (path.startsWith("/v1/models/")) return path.replace("{id}", "acme%2Fwriter-1");
  if (path.includes("/plans/")) return path.replace("{id}", "starter");
  return path.replace("{id}", `{${/(\w+?)s\/\{id\}/.exec(path)?.[1]}}`);
}

function request({ port, method }: Operation, parts: Parts): RawRequest {
  const { target, body, credential = "Bearer {credential}", headers = [] } = parts;
  const head = [`${parts.method ?? method} ${target} HTTP/1.1`, "host: 127.0.0.1", "connection: close"];
  if (credential !== null) head.push(`authorization: ${credential}`);
  if (body !== "") head.push("content-type: application/json");
  return { port, head: [...head, ...headers], body };
}

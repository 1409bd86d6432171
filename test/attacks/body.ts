// An attack that consists of one body, sent once or several times in parallel; and functions that generate such bodies.

import { gzipSync } from "node:zlib";
import { type Attack, bodyBounds, type Target } from "./attack.ts";

export const mib = 1024 * 1024;
export const paths = {
  chat: "/v1/chat/completions",
  messages: "/v1/messages",
  count: "/v1/messages/count_tokens",
  responses: "/v1/responses",
  compact: "/v1/responses/compact",
  tokens: "/v1/responses/input_tokens",
} as const;

export interface BodyOptions {
  path?: (typeof paths)[keyof typeof paths];
  gzip?: boolean;
  /** How many copies of the body are sent in parallel. */
  parallel?: number;
  isQuick?: boolean;
  /** The factor by which the conversation grows when the service decodes the body. */
  grows?: number;
  /** The text with which every response's status and code must begin: `413`, `400 invalid_json`. */
  wanted?: string;
}

/** An attack with one body. `text` returns the whole body, given the ID of an existing model. */
export function body(name: string, options: BodyOptions, text: (model: string) => string): Attack {
  const { path = paths.chat, gzip = false, parallel = 1, isQuick = false, grows = 1, wanted } = options;
  return {
    name,
    isQuick,
    async run(target) {
      const plain = Buffer.from(text(target.model));
      const sent = gzip ? gzipSync(plain, { level: 9 }) : plain;
      const answers = await Promise.all(Array.from({ length: parallel }, () => post(target, path, sent, gzip)));
      const others = wanted === undefined ? [] : answers.filter((answer) => !answer.startsWith(wanted));
      const problems = others.map((answer) => `answered ${answer}, not ${wanted}`);
      return { bytes: sent.length * parallel, unpackedBytes: plain.length * parallel, answers, problems };
    },
    bounds({ unpackedBytes, ...sent }) {
      const bytes = unpackedBytes * grows;
      return bodyBounds({ ...sent, unpackedBytes: bytes }, bytes / parallel);
    },
  };
}

async function post({ url, key }: Target, path: string, bytes: Uint8Array, gzip: boolean): Promise<string> {
  const headers: Record<string, string> = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  if (gzip) headers["content-encoding"] = "gzip";
  const signal = AbortSignal.timeout(120_000);
  const answer = await fetch(url + path, { method: "POST", headers, body: bytes, signal });
  const text = await answer.text();
  if (answer.ok) return String(answer.status);
  const { error } = JSON.parse(text) as { error: { code?: string; details?: { error_code?: string } } };
  return `${answer.status} ${error.code ?? error.details?.error_code}`;
}

/** Joins the items with commas: `0,1,2`. */
export function listed(count: number, item: (at: number) => string): string {
  return Array.from({ length: Math.floor(count) }, (_, at) => item(at)).join(",");
}

export function filled(word: string, bytes: number): string {
  return word.repeat(Math.max(0, Math.floor(bytes / word.length)));
}

/**
 * The body of a Chat Completions or Messages request with a short message and additional fields. The path of Responses
 * parses these fields, too, and refuses the request.
 */
export function asking(model: string, fields: string): string {
  return `{"model":"${model}","max_tokens":10,"messages":[{"role":"user","content":"hi"}],${fields}}`;
}

export function saying(model: string, content: string): string {
  return `{"model":"${model}","max_tokens":10,"messages":[{"role":"user","content":${content}}]}`;
}

/** The body of a Chat Completions request with a tool whose JSON Schema has these fields. */
export function schema(model: string, fields: string): string {
  const parameters = `"parameters":{"type":"object",${fields}}`;
  return asking(model, `"tools":[{"type":"function","function":{"name":"f",${parameters}}}]`);
}

/** The body, padded with blanks to this size. */
export function padded(text: string, bytes: number): string {
  return text + filled(" ", bytes - text.length);
}

// The cases of engines that deviate from their protocol (cases.jsonl): what a client asks, what the engine answers, byte
// for byte, and the end that every client must see.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export const clients = ["chat", "messages", "responses"] as const;
export type Client = (typeof clients)[number];

/**
 * `s`: streamed. `n`: not streamed to the client, but by the engine. `w`: streamed by neither. `p`: `n` with a healthy
 * spare.
 */
export const modes = ["s", "n", "w", "p"] as const;
export type Mode = (typeof modes)[number];

export type End = "stop" | "length" | "filter" | "tool" | "fail";

export interface Tool {
  name: string;
  description?: string;
  parameters: object;
}

export interface EngineCase {
  id: string;
  kind: string;
  title?: string;
  /** How the service treated the case at the commit before it had dialects. */
  seen: string;
  /** The engine's protocol; chat completions if absent. */
  engine?: Client;
  /**
   * Fields that are added to a request: for each protocol in its own form (those under `extra` as well), and `tools`
   * for all protocols.
   */
  ask?: Partial<Record<Client, object>> & { tools?: Tool[]; extra?: Partial<Record<Client, object>> };
  engine_stream?: string;
  engine_whole?: string;
  /** The engine answers every request with `engine_stream`, streamed or not. */
  answerBoth?: boolean;
  send?: { sse?: boolean };
  clients?: Client[];
  modes?: Mode[];
  dialect?: string;
  /** Rows of `dialect_rows`. */
  rows?: string;
  bounds?: string;
  want?: {
    end?: End;
    text?: string;
    calls?: [name: string, input: unknown][];
    usage?: { input?: number; cached?: number; output?: number };
  };
}

export const cases: EngineCase[] = readFileSync(join(import.meta.dir, "cases.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as EngineCase)
  // Some cases name a dialect by its effect: `vllm` strips `ttl`, and none strips the effort.
  .map((one) => {
    if (one.dialect !== "a Messages engine that strips it") return one;
    return { ...one, dialect: "vllm", rows: "strips: [cache_control.ttl, output_config.effort]" };
  });

/** The modes in which a case is run: those that it names, or else those for which it has bytes. */
export function modesOf(one: EngineCase): Mode[] {
  return modes.filter((mode) => {
    if (one.modes) return one.modes.includes(mode);
    if (mode === "w") return one.engine_whole !== undefined || one.answerBoth === true;
    return mode !== "p" || one.want?.end === "fail";
  });
}

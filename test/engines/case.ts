// The cases of engines that deviate from their protocol (cases.jsonl): the client's request, the engine's response byte
// for byte, and the outcome that every client must get.

import { readFileSync } from "node:fs";
import { join } from "node:path";

export const clients = ["chat", "messages", "responses"] as const;
export type Client = (typeof clients)[number];

/**
 * The modes of a case. `s`: the client and the engine stream. `n`: only the engine streams. `w`: neither streams. `p`:
 * like `n`, with a healthy spare engine.
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
  /** The outcome at the last commit before the service had dialects. */
  seen: string;
  /** The engine's protocol; Chat Completions by default. */
  engine?: Client;
  /**
   * Fields that are added to a request: for each protocol in its own format (so are those under `extra`), and `tools`
   * for all protocols.
   */
  ask?: Partial<Record<Client, object>> & { tools?: Tool[]; extra?: Partial<Record<Client, object>> };
  engine_stream?: string;
  engine_whole?: string;
  /** Whether the engine responds to every request with `engine_stream`, streamed or not. */
  answerBoth?: boolean;
  send?: { sse?: boolean };
  clients?: Client[];
  modes?: Mode[];
  dialect?: string;
  /** The value of `dialect_rows` in sluice.yaml. */
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
  // These cases describe a dialect instead of naming one. The dialect `vllm` removes `ttl`, and `rows` makes it also
  // remove the effort.
  .map((one) => {
    if (one.dialect !== "a Messages engine that strips it") return one;
    return { ...one, dialect: "vllm", rows: "strips: [cache_control.ttl, output_config.effort]" };
  });

/** The modes in which a case is run: those that it names, else those for which it has the engine's bytes. */
export function modesOf(one: EngineCase): Mode[] {
  return modes.filter((mode) => {
    if (one.modes) return one.modes.includes(mode);
    if (mode === "w") return one.engine_whole !== undefined || one.answerBoth === true;
    return mode !== "p" || one.want?.end === "fail";
  });
}

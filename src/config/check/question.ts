/** A question (a probe request) to an engine, and the verdict on its answer: `unknown` if the answer proves nothing. */
import type { Dialect } from "../../core/protocol/dialect.ts";
import type { UpstreamProtocol } from "../../core/upstream/codecs.ts";
import type { Asking, Heard } from "./asking.ts";

export type Verdict = "yes" | "no" | "unknown";

export interface Judged {
  verdict: Verdict;
  /** The reason for the verdict, in a few words. */
  saw: string;
}

export interface CheckQuestion {
  name: string;
  /** Completes the sentence "the engine …", which is true if the verdict is yes. */
  does: string;
  /** The protocols whose engines are asked this question. Absent: all. */
  protocols?: readonly UpstreamProtocol[];
  /** Set if `sluice init` asks this question too. */
  isShort?: true;
  /** Set if this question is asked only when the operator allows it. */
  isLong?: true;
  /** The verdict that the dialect expects. Absent: no row of sluice.yaml depends on it. */
  expects?(dialect: Dialect): Verdict;
  ask(engine: Asking): Promise<Judged>;
}

/** The answer to a short greeting, which several checks need. */
export const hello = (engine: Asking) => engine.once("hello", () => engine.put({}));

export function yes(saw: string): Judged {
  return { verdict: "yes", saw };
}
export function no(saw: string): Judged {
  return { verdict: "no", saw };
}
export function unknown(saw: string): Judged {
  return { verdict: "unknown", saw };
}

const said_characters_max = 60;
/** The statuses of an engine that lacks the path. */
const missing = new Set([404, 405, 501]);

/** The verdict on a question to which the engine gave no answer; null if it gave one. */
export function unanswered({ result, end, isLess }: Heard): Judged | null {
  const { kind, status, said = "" } = end;
  if (result && !isLess) return null;
  if (isLess) return no("refuses the field by its name, and answers without it");
  const line = said.replaceAll(/\s+/g, " ");
  const words = line.length > said_characters_max ? `${line.slice(0, said_characters_max - 1)}…` : line;
  const saw = [status === undefined ? kind : `${kind} (${status})`, words].filter(Boolean).join(": ");
  const isNo = kind === "rejected" || (status !== undefined && missing.has(status));
  return isNo ? no(saw) : unknown(saw);
}

/** The verdict on a question for which any answer is a yes. */
export function taken(heard: Heard, saw = "answered"): Judged {
  return unanswered(heard) ?? yes(saw);
}

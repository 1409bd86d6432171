/**
 * Compaction replaces a conversation by a summary, so that the conversation can go on within the model's context. The
 * model is asked for the summary after the last turn. docs/design/protocols.md, Compaction.
 */
import { Fault } from "./fault.ts";
import type { Turn, UserTurn } from "./request.ts";

const instruction = `Stop here: do not go on with the task and call no tools. This conversation is about to be replaced by what you write now, so write down everything that is needed to go on without it, under these headings:

Goal: what the user wants, and every constraint and preference that still holds.
Decisions: what was decided, found out or ruled out, and why.
Files and state: each file, command and resource that matters, what was changed in it, and how it stands now.
Open ends: what is unfinished, in the order in which it is to be done, and the very next step.
Verbatim: every name, path, identifier, number, error and quoted wording that must be repeated exactly.

If an earlier summary stands in the conversation, carry over all of it that still holds. Invent nothing. Use at most 2,000 words, in the language of the conversation, and write nothing but this summary.`;

export function instructionTurn(): UserTurn {
  return { role: "user", parts: [{ kind: "text", text: instruction }] };
}

const preface = "This summary stands in place of the conversation up to here. You wrote it yourself; go on from it.";

/** The turn that replaces the summarized turns in a later conversation. */
export function summaryTurn(summary: string): UserTurn {
  return { role: "user", parts: [{ kind: "text", text: `${preface}\n\n${summary}` }] };
}

export function isSummary({ role, parts: [part] }: Turn): boolean {
  return role === "user" && part?.kind === "text" && part.text.startsWith(preface);
}

export function leftOutNotice(turns: number): string {
  const [what, verb] = turns === 1 ? ["oldest message", "was"] : [`${turns} oldest messages`, "were"];
  return `[The ${what} of the conversation did not fit into the model's context and ${verb} left out.]`;
}

/** The fault if the model wrote no summary: it called a tool that it was not given, or wrote nothing. */
export function noSummary(): Fault {
  return new Fault("upstream_unavailable", "The model wrote no summary of the conversation. Please try again.", {
    retryAfterSeconds: 1,
  });
}

/** The steps of `sluice apply` as text and as JSON. */
import { maskedUrl } from "../../core/inference/masked.ts";
import { plain } from "../../core/inference/plain-text.ts";
import type { Difference, Step } from "../management/apply/step.ts";
import { painted, type Terminal } from "./terminal.ts";

const signs = { add: "+", change: "~", remove: "-" } as const;
const colors = { add: "green", change: "yellow", remove: "red" } as const;

/**
 * The step in words: a line for the organization, team, key, plan or person, and a line for each field, such as `plan:
 * starter → pro`.
 */
export function describeStep(terminal: Terminal, step: Step): string {
  const { action, kind, differences } = step;
  const end = action === "remove" ? (kind === "key" ? ": revoked" : ": removed") : "";
  const first = painted(terminal, colors[action], `${signs[action]} ${kind} ${nameOf(step)}${end}`);
  const lines = differences.map((difference) => `    ${describe(action, withoutQuery(difference))}`);
  return [first, ...lines].map((line) => `${line}\n`).join("");
}

/** The full name of the thing that the step changes: `acme`, `acme/build server` */
function nameOf({ kind, organization, name }: Step): string {
  return kind === "team" || kind === "key" ? `${organization}/${name}` : name;
}

/**
 * A webhook's URL may have a secret in it, and printed output may be kept. So the parts that may be secret are masked.
 */
function withoutQuery(difference: Difference): Difference {
  if (difference.field !== "notices.url") return difference;
  const masked = (value: unknown) => (typeof value === "string" ? maskedUrl(value) : value);
  return { ...difference, from: masked(difference.from), to: masked(difference.to) };
}

function describe(action: Step["action"], { field, from, to }: Difference): string {
  return action === "add" ? `${field}: ${written(to)}` : `${field}: ${written(from)} → ${written(to)}`;
}

function written(value: unknown): string {
  if (value === null || value === undefined) return "none";
  if (Array.isArray(value)) return `[${value.map(written).join(", ")}]`;
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return plain(text);
}

/** The step as `--json` prints it. */
export function shownStep({ action, kind, organization, name, differences }: Step, secret: string | null) {
  return { action, kind, organization, name, fields: differences.map(withoutQuery), secret };
}

/** A summary of the steps: `2 to add, 1 to change.` or, of steps that were performed, `2 added, 1 changed.` */
export function summaryOf(steps: readonly Step[], tense: "to" | "done"): string {
  const words = { add: "added", change: "changed", remove: "removed" } as const;
  const parts = (["add", "change", "remove"] as const).flatMap((action) => {
    const count = steps.filter((step) => step.action === action).length;
    return count === 0 ? [] : [`${count} ${tense === "to" ? `to ${action}` : words[action]}`];
  });
  return `${parts.join(", ")}.`;
}

// Generates random views of the console: the path and query of a page that a user could open, with grouping, filters
// and time span.

import { meteredOperations } from "../../../src/core/store/ledger.ts";
import type { Chance } from "../../faults/chance.ts";
import { type Books, days, models, upstreams } from "./books.ts";

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

export const groups = ["organization", "team", "key", "model", "operation", "outcome", "day", "month"] as const;

export interface View {
  kind: "report" | "requests" | "windows";
  /** The path and the query, without the console's origin. */
  address: string;
}

export function randomView(chance: Chance, books: Books): View {
  const drawn = chance.below(10);
  const owner = chance.pick(books.organizations);
  if (drawn === 0) return { kind: "windows", address: `/organizations/${owner.slug}` };
  const maybe = (name: string, value: () => string, often = 3) =>
    chance.below(often) === 0 ? { [name]: value() } : {};
  const organization = maybe("organization", () => owner.slug, 2);
  if (drawn < 7) {
    const by = chance.pick(groups);
    return { kind: "report", address: address("/usage", { by, ...organization, ...span(chance) }) };
  }
  const filters = {
    ...organization,
    ...maybe("team", () => chance.pick(owner.teams)),
    ...maybe("key", () => chance.pick(owner.keys)),
    ...maybe("model", () => chance.pick(models)),
    ...maybe("operation", () => chance.pick(meteredOperations)),
    ...maybe("outcome", () => chance.pick(["running", "completed", "cancelled", "failed", "refused"])),
    ...maybe("upstream", () => chance.pick(upstreams)),
    ...span(chance),
  };
  return { kind: "requests", address: address("/requests", filters) };
}

/**
 * A time span of any length between full hours. Sometimes the URL has no span: then the page uses its default, which
 * starts with this month.
 */
function span(chance: Chance): Record<string, string> {
  if (chance.below(6) === 0) return {};
  const now_ms = Date.now();
  const at = () => {
    const step_ms = chance.pick([hour_ms, day_ms]);
    return Math.floor((now_ms - chance.below(days * day_ms)) / step_ms) * step_ms;
  };
  const [one, other] = [at(), at()];
  const from_ms = Math.min(one, other);
  return { from: new Date(from_ms).toISOString(), to: new Date(Math.max(one, other, from_ms + hour_ms)).toISOString() };
}

function address(path: string, filters: Record<string, string>): string {
  const written = new URLSearchParams(filters).toString();
  return written === "" ? path : `${path}?${written}`;
}

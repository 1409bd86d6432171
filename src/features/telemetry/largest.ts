/**
 * The usage of organizations in the last hour. Only the largest are reported by name, so that the number of labels is
 * bounded.
 */

interface Used {
  nanos: number;
  requests: number;
}

const slot_ms = 300_000;
const slots_max = 12;
/**
 * The most organizations that are remembered for each slot of time. Beyond it, the half with the smaller costs is
 * merged into one.
 */
const organizations_remembered = 4_096;

interface Slot {
  number: number;
  organizations: Map<string, Used>;
  rest: Used;
}

export function largest(named_max: () => number, now_ms: () => number, other: string) {
  let slots: Slot[] = [];

  function current(): Slot {
    const number = Math.floor(now_ms() / slot_ms);
    const last = slots.at(-1);
    if (last && last.number >= number) return last;
    slots = slots.filter((slot) => slot.number > number - slots_max);
    const slot = { number, organizations: new Map(), rest: { nanos: 0, requests: 0 } };
    slots.push(slot);
    return slot;
  }

  return {
    add(organizationId: string, nanos: number): void {
      if (named_max() === 0) return;
      const slot = current();
      const used = slot.organizations.get(organizationId);
      if (used) into(used, { nanos, requests: 1 });
      else slot.organizations.set(organizationId, { nanos, requests: 1 });
      if (slot.organizations.size > organizations_remembered) shrink(slot);
    },
    /**
     * The organizations with the largest cost, as many as may be reported by name, and all others together as `other`.
     */
    read(): (Used & { organization: string })[] {
      const most = named_max();
      if (most === 0) return [];
      current();
      const totals = new Map<string, Used>();
      const rest: Used = { nanos: 0, requests: 0 };
      for (const slot of slots) {
        into(rest, slot.rest);
        for (const [organization, used] of slot.organizations) {
          const total = totals.get(organization) ?? { nanos: 0, requests: 0 };
          into(total, used);
          totals.set(organization, total);
        }
      }
      const sorted = bySize(totals);
      for (const [, used] of sorted.slice(most)) into(rest, used);
      const named = sorted.slice(0, most).map(([organization, used]) => ({ organization, ...used }));
      return [...named, { organization: other, ...rest }];
    },
  };
}

function shrink(slot: Slot): void {
  const sorted = bySize(slot.organizations);
  const kept = Math.floor(organizations_remembered / 2);
  for (const [, used] of sorted.slice(kept)) into(slot.rest, used);
  slot.organizations = new Map(sorted.slice(0, kept));
}

function bySize(of: Map<string, Used>): [string, Used][] {
  return [...of].sort(([, a], [, b]) => b.nanos - a.nanos || b.requests - a.requests);
}

function into(total: Used, more: Used): void {
  total.nanos += more.nanos;
  total.requests += more.requests;
}

/**
 * STANDING: whether running requests may go on. They end when their key is revoked, when their organization is
 * suspended or loses its plan, and when their person is suspended, signed out or no longer a member
 * (docs/design/keys.md, Running requests end too). This is checked when a message says that a key, an organization or a
 * person changed, and once a second for every key with a running request.
 */
import type { Fault } from "../inference/fault.ts";
import { type Clock, Present, repeating } from "../time/clock.ts";
import type { Authenticator } from "./authenticate.ts";
import { endsWhatRuns, noActivePlan, type Principal, refusedAs, type Verdict } from "./verdict.ts";

export interface Standing extends Disposable {
  /** The caller, as the directory last described it. */
  readonly principal: Principal;
}

export interface Standings {
  /**
   * Watches a request until the result is disposed of: `end` is called with the reason why the request may not go on.
   */
  begin(principal: Principal, end: (fault: Fault) => void): Standing;
  /** Checks the requests of a key, organization or person (its id) that has changed. */
  changed(id: string): void;
  stop(): Promise<void>;
}

/** One secret of a key, and the requests that run with it. */
interface Holder {
  principal: Principal;
  running: Present<(fault: Fault) => void>;
}

const every_ms = 1_000;
/**
 * The most look-ups for running requests at a time. The rest of the authenticator's `lookups_max` is left to new
 * requests.
 */
const asked_max = 32;

export function standings(parts: {
  authenticator: Pick<Authenticator, "standing">;
  /** Whether a check may end requests. If not, checks only keep the plans of the requests' organizations current. */
  ends: boolean;
  every_ms?: number;
  clock?: Pick<Clock, "after">;
}): Standings {
  const holders = new Map<string, Holder>();
  /**
   * The holders by id: each is listed under the ids of its key, its organization and its person, because a message
   * names only one of these.
   */
  const concerned = new Map<string, Set<Holder>>();
  const times_ms = { every: parts.every_ms ?? every_ms };
  const looks = repeating(() => look([...holders.values()]), times_ms, parts.clock);

  async function look(all: readonly Holder[]): Promise<void> {
    for (let from = 0; from < all.length; from += asked_max) {
      await Promise.all(all.slice(from, from + asked_max).map(ask));
    }
  }

  async function ask(holder: Holder): Promise<void> {
    let verdict: Verdict;
    try {
      verdict = await parts.authenticator.standing(holder.principal.secretHash);
    } catch {
      // The store is away: running requests go on until the end of their leases, or until the next check ends them.
      return;
    }
    if ("principal" in verdict) holder.principal = verdict.principal;
    const fault = parts.ends ? refusalTo(verdict) : null;
    if (fault) for (const end of holder.running.members()) end(fault);
  }

  function holderOf(principal: Principal): Holder {
    const known = holders.get(principal.secretHash);
    if (known) return known;
    const made: Holder = { principal, running: new Present() };
    holders.set(principal.secretHash, made);
    for (const id of idsOf(principal)) {
      const others = concerned.get(id) ?? new Set();
      concerned.set(id, others.add(made));
    }
    return made;
  }

  function forget(holder: Holder): void {
    holders.delete(holder.principal.secretHash);
    for (const id of idsOf(holder.principal)) {
      const others = concerned.get(id);
      others?.delete(holder);
      if (others?.size === 0) concerned.delete(id);
    }
  }

  return {
    begin(principal, end) {
      const holder = holderOf(principal);
      const place = holder.running.enter(end);
      return {
        get principal() {
          return holder.principal;
        },
        [Symbol.dispose]() {
          holder.running.leave(place);
          if (holder.running.size === 0 && holders.get(holder.principal.secretHash) === holder) forget(holder);
        },
      };
    },
    changed: (id) => void look([...(concerned.get(id) ?? [])]),
    stop: looks.stop,
  };
}

function idsOf({ key, organization, person }: Principal): string[] {
  return [key.id, organization.id, ...(person ? [person.id] : [])];
}

/** The fault that ends a running request; null if the request may go on. */
function refusalTo(verdict: Verdict): Fault | null {
  if ("principal" in verdict) return verdict.principal.organization.plan === null ? noActivePlan() : null;
  return endsWhatRuns(verdict.refusal) ? refusedAs(verdict) : null;
}

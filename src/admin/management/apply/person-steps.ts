/** The steps for the people of a file, who are found by issuer and subject, or by a verified e-mail address. Pure. */

import { shellWord } from "../shell-word.ts";
import { checkPerson } from "./checks.ts";
import { limitsTaken } from "./limits.ts";
import { membershipsWritten, nameOf, namesOf, normalName, personKind, placed, valuesOf } from "./person-kind.ts";
import type { PersonState } from "./state.ts";
import { type Step, stepTo } from "./step.ts";
import { type Diff, ownOf, type WantedPerson } from "./wanted.ts";

export function personSteps(diff: Diff): Step[] {
  const { people } = diff.wanted;
  if (!people) return [];
  const found = peopleFound(diff);
  const steps = [...found].map(([now, { name, entry }]) => personStep(diff, name, now, entry));
  const others = diff.options.prunes ? diff.state.people.filter((one) => !found.has(one)) : [];
  const emptied = others.map((now) => {
    const name = nameOf(now);
    return name === null ? null : personStep(diff, name, now, { role: null, memberships: {}, limits: {} });
  });
  return [...steps, ...emptied].filter((step) => step !== null);
}

/** The people whom the file names, each once. Adds to `absent` the names of people who have not signed in yet. */
function peopleFound(diff: Diff): Map<PersonState, { name: string; entry: WantedPerson }> {
  const named = diff.state.people.flatMap((now) => namesOf(now).map((name) => [name, now] as const));
  const byName = Map.groupBy(named, ([name]) => name);
  const found = new Map<PersonState, { name: string; entry: WantedPerson }>();
  for (const [name, entry] of Object.entries(diff.wanted.people ?? {})) {
    const [now, ...others] = (byName.get(normalName(name)) ?? []).map(([, one]) => one);
    if (!now) {
      diff.absent.push(name);
      continue;
    }
    const again = found.get(now);
    const message =
      others.length > 0
        ? `is the address of ${others.length + 1} people; name each by issuer and subject (sluice person list --search ${shellWord(name)})`
        : again && `is the same person as '${again.name}'; name each person once`;
    if (message) diff.problems.push({ path: ["people", name], message });
    else found.set(now, { name, entry });
  }
  return found;
}

function personStep(diff: Diff, name: string, now: PersonState, entry: WantedPerson): Step | null {
  const whole = diff.options.prunes ? pruned(diff, now, entry) : entry;
  const values = valuesOf(whole);
  const named = { organization: null, name, path: ["people", name] };
  const step = stepTo(personKind(Object.keys(values)), { ...named, values, now }, diff.problems);
  if (step) checkPerson(diff, step);
  return step;
}

/**
 * Adds removals to each section of the entry: null for each value that was set by hand and that the section does not
 * name.
 */
function pruned({ wanted }: Diff, now: PersonState, entry: WantedPerson): WantedPerson {
  const standing = { memberships: membershipsWritten(now).keys(), limits: now.limits.keys() };
  const stays = (slug: string) => ownOf(wanted.organizations, slug)?.status !== "closed";
  const sections = placed.flatMap((section) => {
    const named = entry[section];
    if (!named) return [];
    const taken = [...standing[section]]
      .filter((slug) => stays(slug))
      .map((slug) => [slug, section === "limits" ? limitsTaken(now.limits.get(slug)!) : null]);
    return [[section, { ...Object.fromEntries(taken), ...named }]];
  });
  return { ...entry, ...Object.fromEntries(sections) };
}

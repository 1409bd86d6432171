/** The steps to the people of a file, who are found by their issuer and subject, or by a verified e-mail address. Pure. */
import { checkPerson } from "./checks.ts";
import { membershipsWritten, nameOf, namesOf, normalName, personKind, placed, valuesOf } from "./person-kind.ts";
import type { PersonState } from "./state.ts";
import { type Step, stepTo } from "./step.ts";
import { type Look, ownOf, type WantedPerson } from "./wanted.ts";

export function personSteps(look: Look): Step[] {
  const { people } = look.wanted;
  if (!people) return [];
  const found = peopleFound(look);
  const steps = [...found].map(([now, { name, entry }]) => personStep(look, name, now, entry));
  const others = look.asked.prunes ? look.state.people.filter((one) => !found.has(one)) : [];
  const emptied = others.map((now) => {
    const name = nameOf(now);
    return name === null ? null : personStep(look, name, now, { role: null, memberships: {}, limits: {} });
  });
  return [...steps, ...emptied].filter((step) => step !== null);
}

/** The people whom the file names, each once. Those who have not come in yet are noted. */
function peopleFound(look: Look): Map<PersonState, { name: string; entry: WantedPerson }> {
  const named = look.state.people.flatMap((now) => namesOf(now).map((name) => [name, now] as const));
  const byName = Map.groupBy(named, ([name]) => name);
  const found = new Map<PersonState, { name: string; entry: WantedPerson }>();
  for (const [name, entry] of Object.entries(look.wanted.people ?? {})) {
    const [now, ...others] = (byName.get(normalName(name)) ?? []).map(([, one]) => one);
    if (!now) {
      look.absent.push(name);
      continue;
    }
    const again = found.get(now);
    const message =
      others.length > 0
        ? `is the address of ${others.length + 1} people; name each by issuer and subject (sluice person list --search ${name})`
        : again && `is the same person as '${again.name}'; name each person once`;
    if (message) look.problems.push({ path: ["people", name], message });
    else found.set(now, { name, entry });
  }
  return found;
}

function personStep(look: Look, name: string, now: PersonState, entry: WantedPerson): Step | null {
  const whole = look.asked.prunes ? pruned(look, now, entry) : entry;
  const values = valuesOf(whole);
  const named = { organization: null, name, path: ["people", name] };
  const step = stepTo(personKind(Object.keys(values)), { ...named, values, now }, look.problems);
  if (step) checkPerson(look, step, now);
  return step;
}

/** With what was set by hand that a section of the entry does not name: it is to be taken. */
function pruned({ wanted }: Look, now: PersonState, entry: WantedPerson): WantedPerson {
  const standing = { memberships: membershipsWritten(now).keys(), limits: now.limits.keys() };
  const stays = (slug: string) => ownOf(wanted.organizations, slug)?.status !== "closed";
  const sections = placed.flatMap((section) => {
    const named = entry[section];
    if (!named) return [];
    const taken = [...standing[section]].filter((slug) => stays(slug)).map((slug) => [slug, null]);
    return [[section, { ...Object.fromEntries(taken), ...named }]];
  });
  return { ...entry, ...Object.fromEntries(sections) };
}

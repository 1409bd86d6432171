/** Finds the subject whose limits a command shows or sets, from the typed words: `team research`, `ann`, or an ID. */
import { allOf } from "../management/page.ts";
import { shellWord } from "../management/shell-word.ts";
import type { Management } from "../management/verbs.ts";

export const subjectWords = ["org", "team", "key", "person"] as const;
type SubjectWord = (typeof subjectWords)[number];

/** A subject as the management operations name it: its organization, by slug or ID, and its own ID. */
export interface NamedSubject {
  kind: SubjectWord;
  id: string;
  organization: string;
}

const prefixes: Record<string, SubjectWord> = { org_: "org", team_: "team", key_: "key", per_: "person" };

const address = /^[^\s@]+@[^\s@]+[.][^\s@]+$/;

export async function subjectNamed(
  manage: Management,
  typed: readonly string[],
  organization: string | undefined,
): Promise<NamedSubject> {
  const [first = "", second] = typed;
  const word = subjectWords.find((one) => one === first || (first === "organization" && one === "org"));
  const name = second ?? (word ? undefined : first || undefined);
  if (typed.length > (word ? 2 : 1))
    throw new Error(`say whose limits they are in two words, such as: team ${shellWord(typed.at(-1)!)}`);
  if (word === "org" || (word === undefined && name === undefined)) {
    const id = name ?? organization ?? (await onlyOrganization(manage));
    return { kind: "org", id, organization: id };
  }
  if (name === undefined) throw new Error(`name the ${word}, by its ID or its name`);
  const kinds = word ? [word] : subjectWords;
  const byId = kinds.find((kind) => kind === prefixes[/^[a-z]+_(?=[0-9a-f]{32}$)/.exec(name)?.[0] ?? ""]);
  if (byId && byId !== "person") return { kind: byId, id: name, organization: organization ?? "" };
  if (byId || (address.test(name) && kinds.includes("person")))
    return { kind: "person", id: name, organization: organization ?? (await organizationOf(manage, name)) };
  const found = (await Promise.all(kinds.map((kind) => finders[kind](manage, name, organization)))).flat();
  if (found.length === 1) return found[0]!;
  if (found.length > 1) {
    const ids = found.map(({ kind, id }) => `${kind} ${id}`).join(", ");
    const byKind = new Set(found.map(({ kind }) => kind)).size === found.length;
    const asked = byKind
      ? `Put its kind before the name, as in: ${found[0]!.kind} ${shellWord(name)}`
      : "Say which, by its ID";
    throw new Error(`'${name}' names ${found.length} things: ${ids}. ${asked}`);
  }
  const [what, look] = word
    ? [`no ${word} '${name}'`, `${word} list`]
    : [`nothing called '${name}'`, `search ${shellWord(name)}`];
  throw new Error(
    `there is ${what}${organization ? ` in ${organization}` : ""}. Name it by its ID, or see: sluice ${look}`,
  );
}

const finders: Record<
  SubjectWord,
  (manage: Management, name: string, organization?: string) => Promise<NamedSubject[]>
> = {
  async org(manage, name) {
    const all = await allOf((page) => manage.pageOrganizations(page));
    return all.filter(({ slug }) => slug === name).map(({ slug }) => ({ kind: "org", id: slug, organization: slug }));
  },
  async team(manage, name, organization) {
    const all = await allOf((page) => manage.pageTeams({ organization, ...page }));
    return all.filter((team) => team.name === name).map(({ id, organization }) => ({ kind: "team", id, organization }));
  },
  async key(manage, name, organization) {
    const all = await allOf((page) => manage.pageKeys({ organization, ...page }));
    return all
      .filter((key) => key.name === name && key.state !== "revoked")
      .map(({ id, organization }) => ({ kind: "key", id, organization }));
  },
  async person(manage, name, organization) {
    const all = await allOf((page) => manage.pagePeople({ organization, search: name, ...page }));
    const exact = all.filter((one) => one.name?.toLowerCase() === name.toLowerCase());
    const named = exact.length > 0 || all.length !== 1 ? exact : all;
    return named.flatMap(({ id, memberships }) =>
      memberships.flatMap(({ organization: slug }): NamedSubject[] =>
        slug !== null && (organization === undefined || organization === slug)
          ? [{ kind: "person", id, organization: slug }]
          : [],
      ),
    );
  },
};

async function onlyOrganization(manage: Management): Promise<string> {
  const { data } = await manage.pageOrganizations({ limit: 2 });
  if (data.length === 1) return data[0]!.slug;
  throw new Error("say which organization: --org SLUG");
}

async function organizationOf(manage: Management, person: string): Promise<string> {
  const { memberships } = await manage.findPerson({ person });
  const slugs = memberships.flatMap(({ organization }) => organization ?? []);
  if (slugs.length === 1) return slugs[0]!;
  throw new Error(`say in which organization: --org ${slugs.join(" or --org ") || "SLUG"}`);
}

/** Fields that choose an organization or a team by its name, so that nobody has to know a slug or an ID. */
import type { Answer } from "../core/client.ts";
import type { Field } from "../core/form.ts";
import { may, membership } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";

/** The most organizations or teams to choose from; if there are more, the reader types a name. */
const choices_max = 200;

/** The form's choices are loaded with low priority, since they are only seen once somebody opens the form. */
const ofForm = { priority: "low" } as const;

interface Places {
  /** The organizations to choose from. Null: there are too many, or they are on their way. */
  slugs: string[] | null;
  /** The only possible organization: that of the membership, or the only one that the reader sees. */
  only: string | null;
}

export function useOrganizations(): Places {
  const own = membership.value?.organization ?? null;
  const isAsked = own === null && may("pageOrganizations");
  const { answer } = useAnswer("pageOrganizations", isAsked ? { status: "active", limit: choices_max } : null, ofForm);
  if (own !== null) return { slugs: [own], only: own };
  if (!answer || answer.next_cursor) return { slugs: null, only: null };
  const slugs = answer.data.map(({ slug }) => slug);
  return { slugs, only: slugs.length === 1 ? slugs[0]! : null };
}

/** A field to choose an organization. `none`: what an empty choice means, if that is possible. */
export function organizationField({ slugs, only }: Places, none?: string): Field {
  const field = { name: "organization", label: "Organization", value: only, isSent: true } as const;
  const isRequired = none === undefined;
  if (!slugs) return { ...field, kind: "text", isRequired, hint: none ? `Slug; empty: ${none}` : "Slug" };
  return { ...field, kind: "choice", isRequired, choices: isRequired ? slugs : [["", none], ...slugs] };
}

/**
 * A field to choose a team of the organization, or to type its name if there are too many. `organization` is null if it
 * is chosen in the same form.
 */
export function useTeamField(organization: string | null, value = ""): Field {
  const isAsked = organization !== null && may("pageTeams");
  const asked = useAnswer("pageTeams", isAsked ? { organization, limit: choices_max } : null, ofForm);
  const field = { name: "team", label: "Team", value } as const;
  if (organization === null || asked.answer?.next_cursor) return { ...field, kind: "text", hint: "Name" };
  return { ...field, kind: "choice", choices: teamNames(asked.answer) };
}

const teamNames = (teams: Answer<"pageTeams"> | null) => teams?.data.map(({ name }) => name) ?? [];

/**
 * Searches names, reading each table of names once. Things whose ids begin with the searched text are found by a range
 * of the primary key.
 */
import type { FoundThing, SearchedKind, Searching } from "../../admin/store/search.ts";
import type { IdPrefix } from "../../core/store/ids.ts";
import type { Querying } from "./database.ts";
import { shownId, uuidIfAny } from "./rows.ts";

const prefixes: Record<SearchedKind, IdPrefix> = {
  organization: "org_",
  team: "team_",
  person: "per_",
  key: "key_",
};

export function searching(db: Querying): Searching {
  return {
    async search(query) {
      const { text, organizationId, personId, limit } = query;
      const range = rangeOf(text);
      const kinds = range ? query.kinds.filter((kind) => prefixes[kind] === range.prefix) : query.kinds;
      if (kinds.length === 0) return [];
      const places = [uuidIfAny(organizationId, "org_"), uuidIfAny(personId, "per_"), limit];
      return db.query<FoundThing>(
        statementOf(kinds, range !== null),
        range ? [...places, range.from, range.to] : [...places, text.toLowerCase()],
      );
    },
  };
}

/** The range of ids that begin with this text; null if it is not the beginning of an id. */
function rangeOf(text: string): { prefix: string; from: string; to: string } | null {
  const [, prefix, digits] = /^((?:org|team|per|key)_)([0-9a-f]{1,32})$/.exec(text) ?? [];
  if (prefix === undefined || digits === undefined) return null;
  return { prefix, from: digits.padEnd(32, "0"), to: digits.padEnd(32, "f") };
}

interface Source {
  /**
   * How things of one kind are queried: the columns that are shown, the texts that are searched, and the tables. The id
   * is `x.id`.
   */
  name: string;
  organization: string;
  detail: string;
  texts: readonly string[];
  from: string;
  where: string;
}

const sources: Record<SearchedKind, Source> = {
  organization: {
    name: "x.name",
    organization: "x.slug",
    detail: "x.slug",
    texts: ["x.slug", "x.name"],
    from: "organization x",
    where: "($1::uuid is null or x.id = $1)",
  },
  team: {
    name: "x.name",
    organization: "o.slug",
    detail: "null",
    texts: ["x.name"],
    from: "team x join organization o on o.id = x.organization_id",
    where: "x.removed_at is null and ($1::uuid is null or x.organization_id = $1)",
  },
  person: {
    name: "coalesce(x.name, x.email, 'a person without a name')",
    organization: "null",
    detail: "x.email",
    texts: ["x.name", "x.email"],
    from: "person x",
    where: `($1::uuid is null or exists (
      select from membership m where m.person_id = x.id and m.organization_id = $1 and m.ended_at is null))`,
  },
  key: {
    name: "x.name",
    organization: "o.slug",
    detail: "coalesce(p.name, p.email, x.owner)",
    texts: ["x.name"],
    from: "api_key x join organization o on o.id = x.organization_id left join person p on p.id = x.person_id",
    where: `x.kind = 'key' and x.revoked_at is null and ($1::uuid is null or x.organization_id = $1)
      and ($2::uuid is null or x.person_id = $2)`,
  },
};

/**
 * SQL for the rank of a match: 0: the text is equal; 1: it begins with the searched text; 2: it contains the searched
 * text; null: no match.
 */
const rankOf = (text: string) => `case when lower(${text}) = $4 then 0 when starts_with(lower(${text}), $4) then 1
  when position($4 in lower(${text})) > 0 then 2 end`;

function statementOf(kinds: readonly SearchedKind[], isById: boolean): string {
  const parts = kinds.map((kind, place) => {
    const { name, organization, detail, texts, from, where } = sources[kind];
    const rank = isById ? "0" : `least(${texts.map(rankOf).join(", ")})`;
    const matches = isById ? "x.id between $4::uuid and $5::uuid" : `${rank} is not null`;
    return `(select '${kind}' as kind, ${shownId("x.id", prefixes[kind])} as id, ${name} as name, ${organization}::text as organization,
        ${detail}::text as detail, ${rank} as rank, ${place} as place
      from ${from} where ${where} and ${matches} order by rank, name, x.id limit $3)`;
  });
  // The first part only gives the parameters their types, since the queries of the kinds may not use all of them.
  return `with asked as (select $1::uuid, $2::uuid) select f.kind, f.id, f.name, f.organization, f.detail, f.rank from (${parts.join(" union all ")}) f
    order by f.rank, f.place, f.name, f.id limit $3`;
}

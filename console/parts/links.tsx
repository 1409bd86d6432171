/** Links to the pages of things. */
import { grouped, shortId } from "../core/format.ts";
import { may } from "../core/session.ts";

export function RequestLink({ id }: { id: string }) {
  return (
    <a class="nowrap" href={`/requests/${id}`} title={id}>
      <code>{shortId(id)}</code>
    </a>
  );
}

export function OrganizationLink({ slug }: { slug: string | null | undefined }) {
  if (!slug) return <span class="fine">all</span>;
  return may("findOrganization") ? (
    <a href={`/organizations/${encodeURIComponent(slug)}`}>{slug}</a>
  ) : (
    <span>{slug}</span>
  );
}

const places = {
  team: { path: "/teams", needs: "findTeam" },
  person: { path: "/people", needs: "pagePeople" },
  key: { path: "/keys", needs: "findKey" },
} as const;

interface Thing {
  kind: keyof typeof places;
  id: string;
  /** The name of the thing. Null: the thing has no name, or no longer exists; its ID is shown. */
  name?: string | null | undefined;
}

/** A team, a person or a key by its name, which leads to its page. */
export function ThingLink({ kind, id, name }: Thing) {
  const { path, needs } = places[kind];
  const words = name ?? <code class="nowrap">{shortId(id)}</code>;
  return may(needs) ? (
    <a href={`${path}/${id}`} title={id}>
      {words}
    </a>
  ) : (
    <span title={id}>{words}</span>
  );
}

export function Tokens({ input, output }: { input: number; output: number }) {
  return (
    <span class="nowrap" title={`${grouped(input)} tokens in, ${grouped(output)} out`}>
      {grouped(input)} → {grouped(output)}
    </span>
  );
}

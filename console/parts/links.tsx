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

/** An ID that leads to the requests of its thing. */
export function RequestsOf({ by, id, words }: { by: "key" | "person" | "team"; id: string; words?: string }) {
  return (
    <a href={`/requests?${by}=${id}`} title={id}>
      {words ?? <code class="nowrap">{shortId(id)}</code>}
    </a>
  );
}

export function Tokens({ input, output }: { input: number; output: number }) {
  return (
    <span class="nowrap" title={`${grouped(input)} tokens in, ${grouped(output)} out`}>
      {grouped(input)} → {grouped(output)}
    </span>
  );
}

/** A membership as verbs answer it and commands print it (docs/identity.md, People). */
import Type from "typebox";
import { scopes } from "../../core/store/directory.ts";
import { personRoles, type Membership as StoredMembership } from "../../core/store/people.ts";
import { id, instant, nullable, oneOf } from "./shapes.ts";

export const Membership = Type.Object(
  {
    organization_id: nullable(id("org")),
    organization: nullable(Type.String({ description: "The organization's slug. Null: the role is for the service." })),
    team: nullable(Type.Object({ id: id("team"), name: Type.String() })),
    role: oneOf([...personRoles]),
    scopes: Type.Array(oneOf([...scopes]), { description: "The most that the person's keys and tokens there may do." }),
    models: nullable(Type.Array(Type.String(), { description: "Null: every model." })),
    source: oneOf(["rule", "hand"], { description: "`hand`: an administrator gave it, and it stays." }),
    created_at: instant("When it was given first."),
    created_by: Type.String({ description: "`operator:<name>`, `cli:<user>` or `service`." }),
  },
  { $id: "Membership" },
);

export const membershipWords = ({ organization, team, role, source }: StoredMembership) =>
  `${organization === null ? role : `${role} in ${organization}`}${team ? `, team ${team.name}` : ""}${source === "hand" ? " (by hand)" : ""}`;

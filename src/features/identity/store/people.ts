/**
 * PEOPLE: everybody who signs in through an issuer, with their rights. A person is one subject of one issuer; a
 * membership is a role in an organization, or for the service. Rules give memberships anew each time the issuer
 * confirms the person; memberships that were given by hand stay. Implemented by `postgres`; docs/identity.md describes
 * it for operators.
 *
 * The store, sign-ins and sessions, and the answers of management verbs share one schema of a person.
 *
 * To admit a person, call `confirmPerson` of src/features/identity/confirm.ts, which applies the rules in force and
 * then calls `confirm` here.
 */
import Type from "typebox";
import { id, instant, version } from "../../../core/operations/fields.ts";
import { nullable, oneOf } from "../../../core/protocol/shapes/contract.ts";
import { decode, type Value } from "../../../core/schema/codec.ts";
import { type Actor, scopes } from "../../../core/store/directory.ts";
import { type NamedMembership, type PersonKind, personKinds, personRoles } from "../../../core/store/people.ts";

export const Membership = Type.Object(
  {
    organization_id: nullable(id("org")),
    organization: nullable(
      Type.String({ description: "The organization's slug. Null: the role is for the service.", examples: ["acme"] }),
    ),
    team: nullable(
      Type.Object(
        { id: id("team"), name: Type.String() },
        { examples: [{ id: `team_${"0".repeat(31)}5`, name: "research" }] },
      ),
    ),
    role: oneOf([...personRoles]),
    scopes: Type.Array(oneOf([...scopes]), {
      description: "The most that the person's keys and tokens there may do.",
      examples: [[...scopes]],
    }),
    models: nullable(Type.Array(Type.String(), { description: "Null: every model." })),
    source: oneOf(["rule", "hand"], {
      description: "`hand`: an administrator gave it. It stays, and counts before one by a rule.",
    }),
    created_at: instant("When it was given first."),
    created_by: Type.String({
      description: "`operator:<name>`, `cli:<user>` or `service`, which is for one by a rule.",
      examples: ["service"],
    }),
  },
  { $id: "Membership" },
);
export type Membership = Value<typeof Membership>;
/** Decodes a membership from the JSON that SQL makes of its row. */
export const membershipOfRow = (json: unknown): Membership => decode(Membership, json);

export const Person = Type.Object(
  {
    id: id("per"),
    issuer: Type.String({
      description: "The issuer that vouches for the person.",
      examples: ["https://login.example"],
    }),
    subject: nullable(
      Type.String({ description: "The issuer's name for the person. Null: forgotten.", examples: ["248289761001"] }),
    ),
    kind: oneOf([...personKinds], { description: "`service`: a workload." }),
    email: nullable(Type.String({ examples: ["ann@example.com"] })),
    is_email_verified: Type.Boolean({
      description: "Whether the issuer says that the address is the person's.",
      examples: [true],
    }),
    name: nullable(Type.String({ examples: ["Ann Example"] })),
    groups: Type.Array(Type.String({ examples: ["research"] }), {
      description: "The groups of the last answer that had them. An `organization-admin` sees none.",
    }),
    state: oneOf(["active", "suspended", "forgotten"]),
    created_at: instant("When the person first came."),
    confirmed_at: instant("When the issuer last vouched for the person."),
    memberships: Type.Array(Membership, { description: "At most one in an organization, and one for the service." }),
    version: version(),
  },
  { $id: "Person" },
);
export type Person = Value<typeof Person>;

/** A person, with the fields that only the service itself uses. */
export type KnownPerson = Person & {
  /** The time at which the issuer last sent groups; null: never. */
  groupsAt: Date | null;
  /** Sign-ins, sessions and tokens that were issued before this instant are invalid; null: this ends none of them. */
  notBefore: Date | null;
  /** The store's time when the person was read; ages of the person's data are measured by it. */
  readAt: Date;
};

/** The claims of an issuer about a person. Undefined fields keep their stored values. */
export interface Confirmation {
  /** `per_` + UUIDv7 hex: the id if the person is new. */
  id: string;
  issuer: string;
  subject: string;
  kind: PersonKind;
  email?: string | null | undefined;
  isEmailVerified?: boolean | undefined;
  name?: string | null | undefined;
  groups?: readonly string[] | undefined;
  /**
   * The time at which the issuer made the claims; absent: now. Claims that are older than the stored claims, or than
   * `notBefore`, change nothing.
   */
  at?: Date | undefined;
  /**
   * The memberships that the rules give; of several in one organization, the first counts. Null: the person's
   * memberships stay.
   */
  memberships: readonly NamedMembership[] | null;
  /**
   * Set at a sign-in: the e-mail address that these claims verify. The invitations to this address are accepted. Absent
   * or null: no invitations are accepted.
   */
  invited?: string | null | undefined;
  /**
   * If the person gets a membership again after having had none in the organization for longer than this, the person's
   * old keys there are revoked. Null: the old keys work again, however long that was.
   */
  keysEndAfter_ms?: number | null | undefined;
}

export type Confirmed = KnownPerson & {
  isNew: boolean;
  /** Memberships that were ignored because their organization or team does not exist. */
  missing: NamedMembership[];
};

export interface People {
  findPerson(id: string): Promise<KnownPerson | null>;
  personOf(issuer: string, subject: string): Promise<KnownPerson | null>;
  /**
   * Finds or creates the person, and stores the claims. The memberships that rules gave before are replaced by the
   * given ones. Requests that run with the rights of a lost membership end, on every node. A suspended person is also
   * confirmed, and stays suspended.
   */
  confirm(confirmation: Confirmation): Promise<Confirmed>;
  /** Makes all sign-ins, sessions and tokens invalid that were issued to the person until now. */
  endIssued(id: string, actor: Actor): Promise<void>;
  /**
   * Deletes some of the people who never had a membership, a key, a limit or a suspension, and whom their issuer has
   * not confirmed for 30 days. Returns the number of deleted people.
   */
  deleteVisitors(): Promise<number>;
  /**
   * The key that stands for a person's identity tokens in this organization; it is created at the first use. Its usage
   * counts in the team of the person's membership, even if the team changes. Null: the membership, the person or the
   * organization is gone.
   */
  tokenKey(input: { id: string; personId: string; organization: string }): Promise<TokenKey | null>;
}

/** A key of kind `jwt`, which stands for a person's identity tokens. */
export interface TokenKey {
  id: string;
  /** The hash by which the directory finds the key. No text that a client could send has this hash. */
  secretHash: Uint8Array;
}

/** A key in the management interface: its fields, examples, and columns. */

import Type from "typebox";
import type { Value } from "../../core/schema/codec.ts";
import { keyKinds, keyStates, scopes } from "../../core/store/directory.ts";
import { day } from "../../core/time/written.ts";
import type { Column } from "./command.ts";
import { raiseColumn, raiseNow } from "./raise.ts";
import { exampleSecret, examples, id, instant, life, nullable, once, oneOf, Secret, version } from "./shapes.ts";
import { exampleStanding, standing, standingColumn } from "./standing.ts";

const { id: keyId, ...keyRest } = {
  id: id("key"),
  kind: oneOf([...keyKinds], { description: "`sign-in`: a device of a person. `jwt`: an issuer's tokens." }),
  organization_id: id("org"),
  organization: Type.String({ description: "The organization's slug." }),
  name: Type.String(),
  scopes: Type.Array(oneOf([...scopes])),
  allowed_models: nullable(Type.Array(Type.String(), { description: "Null: every model." })),
  ...life,
  last_used_from: nullable(Type.String({ description: "An address; of IPv6, its /64." })),
  created_by: nullable(Type.String({ description: "`operator:<name>`, `cli:<user>` or `service`." })),
  owner: nullable(Type.String()),
  person_id: nullable(id("per")),
  labels: Type.Record(Type.String(), Type.String()),
  allowed_addresses: nullable(Type.Array(Type.String(), { description: "Null: every address." })),
  state: oneOf([...keyStates], { description: "When this was read." }),
  ends_at: nullable(
    instant("When it ended, or will end: revoked, expired, older or longer unused than its organization allows."),
  ),
  version: version(),
  secrets: Type.Array(Secret, { description: "Newest first." }),
};
export const keyFields = { id: keyId, ...keyRest };
export const Key = Type.Object(keyFields, { $id: "Key" });
export type Key = Value<typeof Key>;
export const KeyStanding = Type.Object(
  { ...keyFields, standing: standing(), raise: raiseNow() },
  { $id: "KeyStanding" },
);
export type KeyStanding = Value<typeof KeyStanding>;
export const NewKey = Type.Object(
  { id: keyId, key: nullable(Type.String({ description: `The key. ${once}` })), ...keyRest },
  { $id: "NewKey" },
);
export type NewKey = Value<typeof NewKey>;

export const exampleKey: Key = {
  id: examples.key,
  kind: "key",
  organizationId: examples.organization,
  organization: "acme",
  name: "build server",
  scopes: ["inference:create"],
  allowedModels: null,
  createdAt: examples.at,
  expiresAt: null,
  revokedAt: null,
  lastUsedAt: null,
  lastUsedFrom: null,
  createdBy: "operator:ann",
  owner: null,
  personId: null,
  labels: {},
  allowedAddresses: null,
  state: "active",
  endsAt: null,
  version: 1,
  secrets: [{ prefix: "slk_3fJk", ...exampleSecret }],
};
export const exampleNow: KeyStanding = { ...exampleKey, standing: exampleStanding, raise: null };
export const exampleNew: NewKey = { ...exampleKey, key: `slk_${"x".repeat(38)}` };

export const keyColumns: Column<KeyStanding>[] = [
  { head: "ID", cell: (key) => key.id },
  { head: "ORG", cell: (key) => key.organization },
  { head: "NAME", cell: (key) => key.name, breaks: true },
  { head: "STATE", cell: (key) => key.state },
  standingColumn,
  raiseColumn,
  {
    head: "KEY",
    optional: true,
    cell: (key) =>
      key.secrets
        .slice(0, 1)
        .map((one) => `${one.prefix}…${one.suffix}`)
        .join(""),
  },
  { head: "SCOPES", cell: (key) => key.scopes.join(" "), breaks: true, optional: true },
  { head: "LAST USED", optional: true, cell: (key) => (key.lastUsedAt ? day(key.lastUsedAt) : "never") },
  { head: "ENDS", optional: true, cell: (key) => (key.endsAt ? day(key.endsAt) : "never") },
];

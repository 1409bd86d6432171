/** A key in the management interface: the key as the store returns it, and the used share of its limits. */
import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import { day } from "../../core/time/written.ts";
import { keyFields } from "../store/key.ts";
import { type Column, flag } from "./command.ts";
import { once } from "./credential.ts";
import { words } from "./shapes.ts";
import { standing, standingColumn } from "./standing.ts";

export const oneKey = { id: words("ID of the key.") };
export const keyFlag = flag("<id>", "ID of the key");

const { id: keyId, ...keyRest } = { ...keyFields, standing: standing() };
export const Key = Type.Object({ id: keyId, ...keyRest }, { $id: "Key" });
export type Key = Value<typeof Key>;
export const NewKey = Type.Object(
  {
    id: keyId,
    key: nullable(Type.String({ description: `The key. ${once}`, examples: [`slk_${"x".repeat(38)}`] })),
    ...keyRest,
  },
  { $id: "NewKey" },
);
export type NewKey = Value<typeof NewKey>;

export const keyColumns: Column<Key>[] = [
  { head: "ID", cell: (key) => key.id },
  { head: "ORG", cell: (key) => key.organization },
  { head: "NAME", cell: (key) => key.name, breaks: true },
  { head: "STATE", cell: (key) => key.state },
  { head: "OWNER", cell: (key) => key.owner ?? key.personId ?? "", breaks: true },
  standingColumn,
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

/** Keys: create, list, show, rotate, revoke. An `organization-admin` does all of it in the own organization. */
import Type from "typebox";
import { nullable, oneOf } from "../../../protocol/shapes/contract.ts";
import { keyStates } from "../../../store/directory.ts";
import { limitChanges } from "../budget-shapes.ts";
import { exampleAt, exampleIds, exampleSecret } from "../examples.ts";
import {
  type ManagementOperation,
  managementOperation,
  pageParameters,
  pageRead,
  pageSchema,
  pageShown,
  words,
} from "../operation.ts";
import { type ReadKey, readKey } from "../read-key.ts";
import { keyJson, newKeyJson } from "../records.ts";
import { KeyRecord, NewKeyRecord } from "../shapes.ts";

export const exampleKey: Type.Static<typeof KeyRecord> = {
  id: exampleIds.key,
  organization_id: exampleIds.organization,
  organization: "acme",
  name: "build server",
  scopes: ["inference:create"],
  allowed_models: null,
  created_at: exampleAt,
  expires_at: null,
  revoked_at: null,
  last_used_at: null,
  last_used_from: null,
  created_by: "operator:ann",
  owner: null,
  labels: {},
  allowed_addresses: null,
  state: "active",
  ends_at: null,
  version: 1,
  secrets: [{ prefix: "slk_3fJk", ...exampleSecret }],
};
const secret = `slk_${"x".repeat(38)}`;

const readNew = ({ key: secret, ...rest }: ReadKey & { key: string | null }) => ({
  ...readKey(rest),
  secret: secret ?? "",
});

const owner = Type.Optional(nullable(words("A person or a team, in any words.")));
const addresses = Type.Optional(
  nullable(
    Type.Array(Type.String(), {
      maxItems: 100,
      description: "Addresses and networks of its clients, such as `10.0.0.0/8`. Null: all.",
    }),
  ),
);

const tag = "Keys";
const also = ["organization-admin"] as const;
const seen = ["viewer", "organization-admin"] as const;

export const keyOperations: readonly ManagementOperation[] = [
  managementOperation({
    ...{ verb: "pageKeys", method: "get", path: "/keys", tag, kind: "reading", also: seen },
    summary: "List keys",
    description: "Of all organizations or of one, in the order in which they were created.",
    takes: Type.Object({
      ...pageParameters,
      organization: Type.Optional(words("Slug or ID.")),
      state: Type.Optional(
        oneOf([...keyStates], {
          description:
            "`active`: it works. `expired`: or older than its organization allows. `unused`: for longer than that.",
          "x-must-be": "active, revoked, expired or unused",
        }),
      ),
      unused_for: Type.Optional(
        words("Such as `30d`: only keys not used for so long. One that was never used counts from its creation."),
      ),
    }),
    answers: pageSchema(KeyRecord, "Keys"),
    example: { answer: { data: [exampleKey], next_cursor: null } },
    encode: (page) => pageShown(page, keyJson),
    read: (value: { data: ReadKey[]; nextCursor: string | null }) => pageRead(value, readKey),
  }),
  managementOperation({
    ...{ verb: "createKey", method: "post", path: "/keys", tag, kind: "creation", also },
    summary: "Create a key",
    description: "The answer has the key, this once.",
    takes: Type.Object({
      organization: words("Slug or ID."),
      name: words("What it is for."),
      scopes: Type.Optional(nullable(Type.Array(Type.String(), { maxItems: 10, description: "Else all three." }))),
      models: Type.Optional(
        nullable(Type.Array(Type.String(), { maxItems: 1000, description: "IDs of models; else every model." })),
      ),
      expires: Type.Optional(nullable(words("ISO 8601 with a time zone, or a date in UTC; else never."))),
      owner,
      labels: Type.Optional(Type.Record(Type.String(), nullable(Type.String()))),
      addresses,
      team: Type.Optional(nullable(words("ID or name of a team of the organization."))),
      limits: Type.Optional(
        nullable(limitChanges("On top of what its team or its organization gives a new key. Null takes a limit away.")),
      ),
    }),
    answers: NewKeyRecord,
    example: {
      takes: { organization: "acme", name: "build server", scopes: ["inference:create"] },
      answer: { ...exampleKey, key: secret },
    },
    encode: newKeyJson,
    read: readNew,
  }),
  managementOperation({
    ...{ verb: "findKey", method: "get", path: "/keys/{id}", id: "id", tag, kind: "reading", also: seen },
    summary: "Show a key",
    description: "Never its secret.",
    answers: KeyRecord,
    example: { id: exampleIds.key, answer: exampleKey },
    encode: keyJson,
    read: readKey,
  }),
  managementOperation({
    ...{ verb: "updateKey", method: "patch", path: "/keys/{id}", id: "id", tag, kind: "change", also },
    summary: "Change a key",
    description:
      "What is left out stays. Every node knows within a second; what runs goes on. Its team and limits: `updateKeyBudget`.",
    takes: Type.Object({
      name: Type.Optional(words("What it is for.")),
      scopes: Type.Optional(Type.Array(Type.String(), { maxItems: 10 })),
      models: Type.Optional(
        nullable(Type.Array(Type.String(), { maxItems: 1000, description: "IDs of models. Null: every model." })),
      ),
      expires: Type.Optional(nullable(words("ISO 8601 with a time zone, or a date in UTC. Null: never."))),
      owner,
      labels: Type.Optional(
        Type.Record(Type.String(), nullable(Type.String()), {
          description: "Labels that are not named stay; null takes one away.",
        }),
      ),
      addresses,
    }),
    answers: KeyRecord,
    example: {
      ...{ id: exampleIds.key, takes: { owner: "ann@acme.example", labels: { stage: "production" } } },
      answer: { ...exampleKey, owner: "ann@acme.example", labels: { stage: "production" } },
    },
    encode: keyJson,
    read: readKey,
  }),
  managementOperation({
    ...{ verb: "rotateKey", method: "post", path: "/keys/{id}/rotate", id: "id", tag, kind: "act", also },
    summary: "Give a key a new secret",
    description: "The ID stays. The old secret works until its grace ends, or until it is revoked.",
    takes: Type.Object({ grace: Type.Optional(nullable(words("Such as `30m`, `1h`, `7d`, or `0s`."))) }),
    answers: NewKeyRecord,
    example: { id: exampleIds.key, takes: { grace: "1h" }, answer: { ...exampleKey, key: secret } },
    encode: newKeyJson,
    read: readNew,
  }),
  managementOperation({
    ...{ verb: "revokeKey", method: "post", path: "/keys/{id}/revoke", id: "id", tag, kind: "act", also },
    summary: "Revoke a key",
    description: "Every node refuses it within a second. Repeating it changes nothing.",
    takes: Type.Object({
      old: Type.Optional(Type.Boolean({ description: "Only the secrets that a rotation replaced." })),
    }),
    answers: KeyRecord,
    example: { id: exampleIds.key, takes: {}, answer: { ...exampleKey, revoked_at: exampleAt } },
    encode: keyJson,
    read: readKey,
  }),
];

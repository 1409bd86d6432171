/** Keys: the secrets with which clients call. A new secret is returned once, and can be read nowhere else. */
import Type from "typebox";
import { oneOf } from "../../core/protocol/shapes/contract.ts";
import { keyKinds } from "../../core/store/directory.ts";
import { exampleOf } from "../store/example.ts";
import { keyStates } from "../store/key.ts";
import { flag } from "./command.ts";
import { noKey } from "./context.ts";
import { grace, graceFlag, old, oldEndsInWords, oldFlag, rotated } from "./credential.ts";
import { Key, keyColumns, keyFlag, NewKey, oneKey } from "./key.ts";
import { createKey, updateKey } from "./key-settings.ts";
import { keySaid, newKeySaid } from "./key-words.ts";
import { narrowedBy } from "./narrowing.ts";
import { byOrganization, partFrom } from "./page.ts";
import { duration, examples, keepers, limitIn, owners, partOf, partOfIds, words } from "./shapes.ts";
import { over, overFlag, withStanding, withStandings } from "./standing.ts";
import { confirmation, verbsOf } from "./verb.ts";

const verb = verbsOf("Keys");

const revokedInWords = ({ name, organization }: Key, old: unknown) =>
  `${old ? "the old secrets of " : ""}key '${name}' of ${organization}`;

const findKey = verb({
  name: "findKey",
  route: "GET /keys/{id}",
  summary: "Show a key",
  description: "With what it has used of its limits, if it has any; never its secret.",
  roles: owners,
  onKey: "show",
  faults: ["resource_not_found"],
  takes: Type.Object(oneKey),
  answers: Key,
  example: { takes: { id: examples.key }, answer: exampleOf(Key) },
  command: { words: "key show", description: "show a key without its secret", takes: { id: keyFlag }, says: keySaid },
  act: async (context, input) => withStanding(context, await context.keyOf(input.id)),
});

export const keyVerbs = [
  verb({
    name: "pageKeys",
    route: "GET /keys",
    summary: "List keys",
    description: "Of all organizations or of one, in the order in which they were created.",
    roles: owners,
    faults: ["resource_not_found"],
    takes: Type.Object({
      ...partOfIds("key"),
      organization: Type.Optional(words("Slug or ID.")),
      team: Type.Optional(words("Only keys in this team: its ID, or with `organization` its name.")),
      person: Type.Optional(words("Only keys of this person, by the ID.")),
      state: Type.Optional(
        oneOf([...keyStates], {
          description:
            "`active`: it works. `expired`: or older than its organization allows. `unused`: for longer than that.",
          "x-must-be": "active, revoked, expired or unused",
        }),
      ),
      kind: Type.Optional(
        oneOf([...keyKinds], {
          description:
            "`key`, unless it is given. `sign-in`: devices of people. `jwt`: callers with an issuer's tokens.",
          "x-must-be": "key, sign-in or jwt",
        }),
      ),
      unused_for: Type.Optional(
        duration(
          "Such as `30d`: only keys not used for this long. A key that was never used counts from its creation.",
        ),
      ),
      ends_within: Type.Optional(
        duration("Such as `14d`: only active keys that end within this time, by their own expiry or by a policy."),
      ),
      over,
    }),
    answers: partOf(Key, "Keys"),
    example: { takes: {}, answer: { data: [exampleOf(Key)], nextCursor: null } },
    command: {
      words: "key list",
      description: "list all keys, or the keys of one organization",
      takes: {
        organization: flag("--org <org>", "slug or ID of the organization"),
        team: flag("--team <team>", "only keys in this team (its ID, or with --org its name)"),
        person: flag("--person <person>", "only keys of this person (the ID)"),
        state: flag("--state <state>", `only keys in this state: ${keyStates.join(", ")}`),
        kind: flag("--kind <kind>", "sign-in: devices of people; jwt: callers with an issuer's tokens (default: key)"),
        unusedFor: flag(
          "--unused-for <time>",
          "only keys not used for this long, such as 30d; an unused key counts from its creation",
        ),
        endsWithin: flag("--ends-within <time>", "only active keys that end within this time, such as 14d"),
        over: overFlag("keys"),
      },
      columns: keyColumns,
      none: ({ team, person, state, kind, unusedFor, endsWithin, over }) =>
        (team ?? person ?? state ?? kind ?? unusedFor ?? endsWithin ?? over) === undefined
          ? "There are no keys yet. To create one, run: sluice key create --org ORG --name NAME\n"
          : "There are no such keys.\n",
      parts: "all",
      order: byOrganization,
    },
    async act(context, input) {
      const { organization, team, person } = input;
      const found = await context.administration.pageKeys({
        ...(await narrowedBy(context, { organization, team, person })),
        limit: limitIn(input),
        after: input.cursor,
        state: input.state,
        kind: input.kind,
        unusedFor_ms: input.unusedFor,
        endsWithin_ms: input.endsWithin,
        overPercent: input.over,
      });
      return partFrom({ ...found, items: await withStandings(context, found.items) });
    },
  }),
  createKey,
  findKey,
  updateKey,
  verb({
    name: "rotateKey",
    route: "POST /keys/{id}/rotate",
    summary: "Give a key a new secret",
    description:
      "The ID stays. The old secret works until its grace ends, 24 hours if none is given, or until it is revoked.",
    roles: keepers,
    onKey: "rotate",
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({ ...oneKey, grace }),
    answers: NewKey,
    example: { takes: { id: examples.key, grace: "1h" }, answer: exampleOf(NewKey) },
    command: {
      words: "key rotate",
      description: "give a key a new secret and print it once; the ID stays the same",
      takes: { id: keyFlag, grace: graceFlag("secret") },
      says: (made, _, now_ms) =>
        newKeySaid(made, `Rotated key '${made.name}' of ${made.organization}.`, oldEndsInWords("key", made, now_ms)),
      help: `
Examples:
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 1h
  $ sluice key rotate key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --grace 0s   # the secret leaked

To rotate without downtime: rotate the key, give its clients the new secret,
check that it works, and run: sluice key revoke ID --old`,
    },
    async act(context, input) {
      const { administration, announce, keyOf } = context;
      const before = await keyOf(input.id);
      const { kept, secret } = await rotated(context, before, {
        form: "slk_",
        grace_ms: input.grace,
        rotate: administration.rotateKey,
        revoke: administration.revokeKey,
        refusal: (why) => `The key ${before.id} ${why} and cannot be rotated. Create a new one.`,
        gone: noKey,
      });
      await announce(before.id);
      return { ...(await withStanding(context, kept)), key: secret };
    },
  }),
  verb({
    name: "revokeKey",
    route: "POST /keys/{id}/revoke",
    summary: "Revoke a key",
    description:
      "Every node refuses it within a second. Repeating it changes nothing. One of a sign-in ends the sign-in; one of identity tokens is not revoked.",
    roles: keepers,
    onKey: "revoke",
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({ ...oneKey, old: old("secret") }),
    answers: Key,
    example: { takes: { id: examples.key }, answer: exampleOf(Key, { revokedAt: examples.at, state: "revoked" }) },
    command: {
      words: "key revoke",
      description: "revoke a key; within a second, every node refuses it",
      takes: { id: keyFlag, old: oldFlag("secret") },
      confirms: confirmation(findKey, {
        question: (key, { old }) =>
          `Revoke ${revokedInWords(key, old)}? Within a second, requests that use ${old ? "them" : "it"} are refused.`,
        refusal: "Nothing was revoked.",
      }),
      says: (key, { old }) => `Revoked ${revokedInWords(key, old)}.\n`,
    },
    async act(context, input) {
      const { administration, actor, announce, keyFor } = context;
      // A key that cannot be rotated has no replaced secrets, so `old` is refused for such a key.
      const { id } = await keyFor(input.id, input.old ? "rotate" : "revoke");
      const key = await administration.revokeKey({ id, old: input.old === true, actor });
      await announce(id);
      return withStanding(context, key ?? noKey(id));
    },
  }),
] as const;

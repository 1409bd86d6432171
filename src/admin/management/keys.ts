/** Keys: the secrets with which clients call. A new secret is answered once and is nowhere else. */

import Type from "typebox";
import { key_random_bytes, newKey, secretOf } from "../../core/auth/key.ts";
import { plainPattern } from "../../core/inference/plain-text.ts";
import { nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import { exampleOf } from "../../core/schema/example.ts";
import { keyKinds, type Organization, scopes } from "../../core/store/directory.ts";
import { idOf } from "../../core/store/ids.ts";
import { keyStates, type StoredKey } from "../store/key.ts";
import { flag, required } from "./command.ts";
import { isClosed, type ManagedCatalog, type ManagementContext, noKey, reusedKey } from "./context.ts";
import { grace, oldEndsInWords, rotated } from "./credential.ts";
import { fail } from "./error.ts";
import { Key, keyColumns, NewKey } from "./key.ts";
import { changeOf, newKeyOf } from "./key-change.ts";
import { keyFacts, keySaid, newKeySaid } from "./key-words.ts";
import { limitValueChanges } from "./limit-shape.ts";
import { newLimits } from "./limits.ts";
import { narrowedBy } from "./narrowing.ts";
import { pageOrganizations } from "./organizations.ts";
import { byOrganization, partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { personIdOf, personNamed } from "./person-named.ts";
import {
  duration,
  entry,
  examples,
  keepers,
  limitIn,
  managers,
  moment,
  name,
  owners,
  partOf,
  partOfIds,
  words,
} from "./shapes.ts";
import { over, overFlag, withStanding, withStandings } from "./standing.ts";
import { noTeam, teamNamed } from "./team.ts";
import { choiceOf, confirmation, someChange, verbsOf } from "./verb.ts";
import { changed, type Listed } from "./version.ts";

const verb = verbsOf("Keys");

const owner = Type.Optional(nullable(name("The owner, as free text.")));
const allow_from = Type.Optional(
  nullable(
    Type.Array(Type.String({ minLength: 1, maxLength: 64, pattern: plainPattern }), {
      minItems: 1,
      maxItems: 100,
      description: "Addresses and networks of its clients, such as `10.0.0.0/8`. Null: all.",
    }),
  ),
);
const scopeList = (description?: string) =>
  Type.Array(oneOf([...scopes]), { minItems: 1, maxItems: 10, ...(description ? { description } : {}) });
const modelList = (description: string) => Type.Array(entry(), { minItems: 1, maxItems: 1000, description });
const labels = (options: { description?: string; maxProperties?: number }) =>
  Type.Optional(
    Type.Record(Type.String(), nullable(name("Its text.")), {
      propertyNames: Type.String({
        pattern: "^[a-z0-9][a-z0-9._/-]{0,62}$",
        "x-must-be": "1 to 63 lowercase letters, digits, and . _ - /, with a letter or digit first",
      }),
      ...options,
    }),
  );
const keyFlag = flag("<id>", "ID of the key");
const ownerFlag = flag("--owner <owner>", "the owner, as free text");
const revokedInWords = ({ name, organization }: Key, old: unknown) =>
  `${old ? "the old secrets of " : ""}key '${name}' of ${organization}`;
const oneKey = { id: words("ID of the key.") };

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
        over: input.over,
      });
      return partFrom(found, await withStandings(context, found.items), ({ id }) => id);
    },
  }),
  verb({
    name: "createKey",
    route: "POST /keys",
    summary: "Create a key",
    description:
      "The answer has the key, this once. A `member` makes one for themselves: with an expiry, in the team of the membership, and within its scopes and models.",
    roles: keepers,
    kind: "creation",
    faults: ["resource_not_found", "already_exists", "idempotency_key_reused", "wrong_state"],
    takes: Type.Object({
      organization: words("Slug or ID."),
      name: name("What it is for."),
      own_name: Type.Optional(
        Type.Boolean({ description: "True: refused if a key that is not revoked has this name already." }),
      ),
      scopes: Type.Optional(nullable(scopeList("Else all three."))),
      models: Type.Optional(nullable(modelList("IDs of models; else every model."))),
      expires_at: Type.Optional(nullable(moment("ISO 8601 with a time zone, or a date in UTC; else never."))),
      owner,
      labels: labels({ maxProperties: parse.labels_max }),
      allow_from,
      team: Type.Optional(nullable(words("ID or name of a team of the organization."))),
      person: Type.Optional(
        nullable(
          words(
            "ID or verified e-mail address of a person of the organization: it is that person's, in the team of the membership.",
          ),
        ),
      ),
      limits: Type.Optional(
        nullable(limitValueChanges("Its own. Where it has none, what its team or its organization gives counts.")),
      ),
    }),
    answers: NewKey,
    example: {
      takes: { organization: "acme", name: "build server", scopes: ["inference:create"] },
      answer: exampleOf(NewKey),
    },
    command: {
      words: "key create",
      description: "create a key and print it once",
      takes: {
        organization: {
          ...required("--org <org>", "slug or ID of the organization"),
          asks: choiceOf(pageOrganizations, {
            message: "Which organization is the key for?",
            option: ({ slug, name, status }) =>
              status === "closed" ? null : { value: slug, label: name === slug ? slug : `${slug} (${name})` },
            none: "There are no organizations yet. To create one, run: sluice org create SLUG",
          }),
        },
        name: {
          ...required("--name <name>", "name of the key, such as what it is for"),
          asks: { message: "Name of the key, such as what it is for" },
        },
        scopes: flag("--scopes <list>", `any of ${scopes.join(", ")} (default: all three)`),
        models: flag("--models <list>", "IDs of the models that the key can use (default: every model)"),
        expiresAt: flag(
          "--expires <instant>",
          "when the key expires: ISO 8601 with a time zone, or a date in UTC (default: never)",
        ),
        owner: ownerFlag,
        labels: flag("--label <name=text>", "a label; can be repeated"),
        allowFrom: flag("--allow-from <list>", "addresses and networks that can use the key (default: all)"),
        team: flag("--team <team>", "ID or name of a team of the organization"),
        person: flag("--person <person>", `${personNamed} whose key it is; it is in the team of the membership`),
        limits: flag("--limit", "what the key can use (default: what its team or its organization gives)"),
      },
      says: (made) => newKeySaid(made, `Created key '${made.name}' of ${made.organization} (${made.id}).`),
      help: `
Examples:
  $ sluice key create --org acme --name "build server"
  $ sluice key create --org acme --name reports --scopes usage:read --expires 2030-01-31T12:00:00Z --json
  $ sluice key create --org acme --name deploy --owner ann --label stage=production --allow-from 10.0.0.0/8
  $ sluice key create --org acme --name editor --models acme/writer-1,acme/writer-2`,
    },
    async act(context, input) {
      const { administration, actor, catalog, keyOf, newUuid, now_ms, openOrganization, random } = context;
      const { models, aliases } = input.models == null ? noModels : await catalog();
      const wanted = newKeyOf(input, { models, aliases, now_ms: now_ms() });
      const organization = await openOrganization(input.organization);
      refuseLongerLife(wanted.expiresAt, organization, now_ms());
      if (context.person !== null) refuseChoices(input);
      const holder = await holderOf(context, organization, { ...input, person: context.person ?? input.person });
      const named = holder ? holder.team : input.team;
      const teamId = named == null ? null : (await teamNamed(context, named, organization)).id;
      const limits = await newLimits(context, organization, { limits: input.limits, whose: "key" });
      const secret = newKey(random(key_random_bytes));
      const key = await administration.createKey({
        id: idOf(newUuid(), "key_"),
        organizationId: organization.id,
        ...wanted,
        teamId,
        limits,
        personId: holder?.personId ?? null,
        secret: secretOf(secret),
        hasOwnName: input.ownName === true,
        actor,
        repeat: context.repeatOf("createKey", input),
      });
      if (key === "no_team") return noTeam(teamId ?? "");
      if (key === "closed") return isClosed(organization.slug);
      if (key === "name_taken") {
        const taken = parse.excerpt(input.name);
        return fail(`${organization.slug} already has a key '${taken}'. Choose another name.`, "already_exists");
      }
      if (key === "reused") return reusedKey();
      if (!("repeated" in key)) return { ...(await withStanding(context, key)), key: secret };
      return { ...(await withStanding(context, await keyOf(key.repeated))), key: null };
    },
  }),
  findKey,
  verb({
    name: "updateKey",
    route: "PATCH /keys/{id}",
    summary: "Change a key",
    description:
      "What is left out stays. Every node knows within a second; what runs goes on, and counts in the team in which it was admitted.",
    roles: managers,
    onKey: "update",
    kind: "change",
    faults: ["resource_not_found", "wrong_state", "version_conflict"],
    takes: Type.Object(
      {
        ...oneKey,
        name: Type.Optional(name("What it is for.")),
        scopes: Type.Optional(scopeList()),
        models: Type.Optional(nullable(modelList("IDs of models. Null: every model."))),
        expires_at: Type.Optional(nullable(moment("ISO 8601 with a time zone, or a date in UTC. Null: never."))),
        owner,
        labels: labels({ description: "Labels that are not named stay; null takes one away." }),
        allow_from,
        team: Type.Optional(nullable(words("ID or name of a team of its organization. Null: none."))),
      },
      someChange,
    ),
    answers: Key,
    example: {
      takes: { id: examples.key, owner: "ann@example.com", labels: { stage: "production" } },
      answer: exampleOf(Key, { owner: "ann@example.com", labels: { stage: "production" } }),
    },
    command: {
      words: "key update",
      description: "change a key; every node knows within a second",
      takes: {
        id: keyFlag,
        team: {
          ...flag("--team <team>", "ID or name of a team of its organization"),
          none: flag("--no-team", "take the key out of its team"),
        },
        name: flag("--name <name>", "new name"),
        scopes: flag("--scopes <list>", `any of ${scopes.join(", ")}`),
        models: { ...flag("--models <list>", "IDs of the models that the key can use, or all"), none: "all" },
        expiresAt: {
          ...flag("--expires <instant>", "ISO 8601 with a time zone, a date in UTC, or never"),
          none: "never",
        },
        owner: { ...ownerFlag, none: flag("--no-owner", "nobody owns the key") },
        labels: flag("--label <name=text>", "set a label; without a text, take it away; can be repeated"),
        allowFrom: {
          ...flag("--allow-from <list>", "addresses and networks that can use the key, or all"),
          none: "all",
        },
      },
      needsOneOf: "what to change, such as --name or --team",
      versioned: "key",
      says: (key) => ({ pieces: [{ facts: [["key", key.id], ...keyFacts(key)] }] }),
      help: `
Examples:
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --team research
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --owner ann --label stage=production
  $ sluice key update key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d --allow-from 10.0.0.0/8,2001:db8::/64`,
    },
    async act(context, input) {
      const { actor, administration, catalog, keyOf, now_ms, openOrganization } = context;
      const { id, version, ...changes } = input;
      const key = await keyOf(id);
      const { models, aliases } = changes.models == null ? noModels : await catalog();
      if (key.revokedAt) fail(`The key ${key.id} is revoked and cannot be changed. Create a new one.`, "wrong_state");
      const organization = await openOrganization(key.organizationId);
      const team = changes.team == null ? changes.team : await teamNamed(context, changes.team, organization);
      const known = { models, aliases, now_ms: now_ms() };
      const updated = await administration.updateKey({ id: key.id, actor, version }, (now) => {
        const change = changeOf({ ...changes, team }, now, known);
        refuseLongerLife(change.expiresAt, organization, now.secrets[0]?.createdAt.getTime() ?? known.now_ms);
        return change;
      });
      return changed(context, { read: version, id: key.id }, listedKey(context, key.id, team?.id), updated);
    },
  }),
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
      takes: {
        id: keyFlag,
        grace: flag("--grace <time>", "how long the old secret works: 30m, 1h, 7d, or 0s (default: 24h)"),
      },
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
      const { administration, announce, keyOf, random } = context;
      const before = await keyOf(input.id);
      const { id } = before;
      const secret = newKey(random(key_random_bytes));
      const key = await rotated(context, before, {
        secret,
        grace_ms: input.grace,
        rotate: administration.rotateKey,
        revoke: administration.revokeKey,
        refusal: (why) => `The key ${id} ${why} and cannot be rotated. Create a new one.`,
      });
      await announce(id);
      return { ...(await withStanding(context, key ?? noKey(id))), key: secret };
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
    takes: Type.Object({
      ...oneKey,
      old: Type.Optional(Type.Boolean({ description: "Only the secrets that a rotation replaced." })),
    }),
    answers: Key,
    example: { takes: { id: examples.key }, answer: exampleOf(Key, { revokedAt: examples.at, state: "revoked" }) },
    command: {
      words: "key revoke",
      description: "revoke a key; within a second, every node refuses it",
      takes: { id: keyFlag, old: flag("--old", "revoke only the old secrets that rotations replaced") },
      confirms: confirmation(findKey, {
        question: (key, { old }) =>
          `Revoke ${revokedInWords(key, old)}? Within a second, requests that use ${old ? "them" : "it"} are refused.`,
        refusal: "Nothing was revoked.",
      }),
      says: (key, { old }) => `Revoked ${revokedInWords(key, old)}.\n`,
    },
    async act(context, input) {
      const { administration, actor, announce, keyFor } = context;
      // Only a key that may be rotated has secrets that a rotation replaced.
      const { id } = await keyFor(input.id, input.old ? "rotate" : "revoke");
      const key = await administration.revokeKey({ id, old: input.old === true, actor });
      await announce(id);
      return withStanding(context, key ?? noKey(id));
    },
  }),
] as const;

const listedKey = (context: ManagementContext, id: string, team = ""): Listed<StoredKey, typeof Key, "no_team"> => ({
  schema: Key,
  title: ({ name }) => `Key '${name}'`,
  listed: (key) => withStanding(context, key),
  refusals: { gone: () => noKey(id), no_team: () => noTeam(team) },
});

const day_ms = 86_400_000;

/** Refuses fields that people may not choose for their own keys. */
function refuseChoices(input: { [Member in "expiresAt" | "team" | "limits" | "owner" | "person"]?: unknown }): void {
  for (const member of ["team", "limits", "owner", "person"] as const)
    if (input[member] != null) fail(`A key of your own has no '${member}' that you choose. Leave it out.`);
  if (input.expiresAt == null) fail("A key of your own needs 'expires_at', the instant of its end.");
}

/** Refuses an expiry after the end that the organization's policy sets: it would never count, so something else is meant. */
function refuseLongerLife(
  expiresAt: Date | null | undefined,
  { slug, keyLifetimeMaxDays }: Organization,
  from_ms: number,
): void {
  if (!expiresAt || keyLifetimeMaxDays === null) return;
  const last = new Date(from_ms + keyLifetimeMaxDays * day_ms);
  if (expiresAt > last)
    fail(
      `Keys of ${slug} work for ${keyLifetimeMaxDays} days at most from when they are made or rotated. Choose an expiry until ${last.toISOString()}, or none.`,
    );
}

/** The person of a new key, and the person's team in the organization; null: the key is nobody's. */
async function holderOf(
  context: ManagementContext,
  { id, slug }: Organization,
  { person, team }: { person?: string | null | undefined; team?: string | null | undefined },
): Promise<{ personId: string; team: string | null } | null> {
  if (person == null) return null;
  if (team != null) fail("A person's key is in the team of the person's membership. Leave the team out.");
  const found = await context.people.findPerson(await personIdOf(context, person));
  const membership = found?.memberships.find(({ organizationId }) => organizationId === id);
  if (!found || !membership)
    return fail(
      `${slug} has no member '${parse.excerpt(person)}'. To list its people, run: sluice person list --org ${slug}`,
      "resource_not_found",
    );
  return { personId: found.person.id, team: membership.team?.id ?? null };
}

const noModels: Pick<ManagedCatalog, "models" | "aliases"> = { models: [] };

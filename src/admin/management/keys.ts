/** Keys: the secrets with which clients call. A new secret is answered once and is nowhere else. */

import Type from "typebox";
import { key_random_bytes, newKey, secretOf } from "../../core/auth/key.ts";
import { plainPattern } from "../../core/inference/plain-text.ts";
import { keyKinds, keyStates, type Organization, scopes } from "../../core/store/directory.ts";
import { idOf } from "../../core/store/ids.ts";
import { flag } from "./command.ts";
import { isClosed, type ManagedCatalog, type ManagementContext, noKey, reusedKey } from "./context.ts";
import { fail } from "./error.ts";
import { exampleKey, exampleNew, exampleNow, Key, KeyStanding, keyColumns, NewKey } from "./key.ts";
import { changeOf, newKeyOf } from "./key-change.ts";
import { byOrganization, partFrom } from "./page.ts";
import * as parse from "./parse.ts";
import { grace, rotated } from "./rotation.ts";
import {
  duration,
  entry,
  examples,
  keepers,
  limitChanges,
  limitIn,
  managers,
  moment,
  name,
  nullable,
  oneOf,
  owners,
  partOf,
  partOfIds,
  words,
} from "./shapes.ts";
import { over, overFlag, withStanding, withStandings } from "./standing.ts";
import { noTeam } from "./team.ts";
import { newKeyBudget } from "./team-limits.ts";
import { someChange, verbsOf } from "./verb.ts";
import { lastChange, stale } from "./version.ts";

const verb = verbsOf("Keys");

const owner = Type.Optional(nullable(name("The owner, as free text.")));
const addresses = Type.Optional(
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
const oneKey = { id: words("ID of the key.") };

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
    answers: partOf(KeyStanding, "Keys"),
    example: { takes: {}, answer: { data: [exampleNow], nextCursor: null } },
    command: {
      words: "key list",
      description: "list all keys, or the keys of one organization",
      takes: {
        organization: flag("--org <org>", "slug or ID of the organization"),
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
      none: ({ state, kind, unusedFor, endsWithin, over }) =>
        (state ?? kind ?? unusedFor ?? endsWithin ?? over) === undefined
          ? "There are no keys yet. To create one, run: sluice key create --org ORG --name NAME\n"
          : "There are no such keys.\n",
      parts: "all",
      order: byOrganization,
    },
    async act(context, input) {
      const { administration, narrowedTo, withSlugs } = context;
      const found = await administration.pageKeys({
        limit: limitIn(input),
        after: input.cursor,
        organizationId: await narrowedTo(input.organization),
        personId: context.person ?? undefined,
        state: input.state,
        kind: input.kind,
        unusedFor_ms: input.unusedFor,
        endsWithin_ms: input.endsWithin,
        over: input.over,
      });
      return partFrom(found, await withStandings(context, await withSlugs(found.items)), ({ id }) => id);
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
      expires: Type.Optional(nullable(moment("ISO 8601 with a time zone, or a date in UTC; else never."))),
      owner,
      labels: labels({ maxProperties: parse.labels_max }),
      addresses,
      team: Type.Optional(nullable(words("ID or name of a team of the organization."))),
      person: Type.Optional(
        nullable(words("ID of a person of the organization: it is that person's, in the team of the membership.")),
      ),
      limits: Type.Optional(
        nullable(limitChanges("On top of what its team or its organization gives a new key. Null takes a limit away.")),
      ),
    }),
    answers: NewKey,
    example: {
      takes: { organization: "acme", name: "build server", scopes: ["inference:create"] },
      answer: exampleNew,
    },
    async act(context, input) {
      const { administration, actor, catalog, keyOf, newUuid, now_ms, openOrganization, random, withSlug } = context;
      const { models, aliases } = input.models == null ? noModels : await catalog();
      const wanted = newKeyOf(input, { models, aliases, now_ms: now_ms() });
      const organization = await openOrganization(input.organization);
      refuseLongerLife(wanted.expiresAt, organization, now_ms());
      if (context.person !== null) refuseChoices(input);
      const holder = await holderOf(context, organization, { ...input, person: context.person ?? input.person });
      const budget = await newKeyBudget(context, organization, { ...input, ...(holder && { team: holder.team }) });
      const secret = newKey(random(key_random_bytes));
      const key = await administration.createKey({
        id: idOf(newUuid(), "key_"),
        organizationId: organization.id,
        ...wanted,
        ...budget,
        personId: holder?.personId ?? null,
        secret: secretOf(secret),
        hasOwnName: input.ownName === true,
        actor,
        repeat: context.repeatOf("createKey", input),
      });
      if (key === "no_team") return noTeam(budget.teamId ?? "");
      if (key === "closed") return isClosed(organization.slug);
      if (key === "name_taken") {
        const taken = parse.excerpt(input.name);
        return fail(`${organization.slug} already has a key '${taken}'. Choose another name.`, "already_exists");
      }
      if (key === "reused") return reusedKey();
      if (!("repeated" in key)) return { ...key, organization: organization.slug, key: secret };
      return { ...(await withSlug(await keyOf(key.repeated))), key: null };
    },
  }),
  verb({
    name: "findKey",
    route: "GET /keys/{id}",
    summary: "Show a key",
    description: "With what it has used of its limits, if it has any; never its secret.",
    roles: owners,
    onKey: "show",
    faults: ["resource_not_found"],
    takes: Type.Object(oneKey),
    answers: KeyStanding,
    example: { takes: { id: examples.key }, answer: exampleNow },
    act: async (context, input) => withStanding(context, await context.withSlug(await context.keyOf(input.id))),
  }),
  verb({
    name: "updateKey",
    route: "PATCH /keys/{id}",
    summary: "Change a key",
    description:
      "What is left out stays. Every node knows within a second; what runs goes on. Its team and limits: `updateKeyBudget`.",
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
        expires: Type.Optional(nullable(moment("ISO 8601 with a time zone, or a date in UTC. Null: never."))),
        owner,
        labels: labels({ description: "Labels that are not named stay; null takes one away." }),
        addresses,
      },
      someChange,
    ),
    answers: Key,
    example: {
      takes: { id: examples.key, owner: "ann@example.com", labels: { stage: "production" } },
      answer: { ...exampleKey, owner: "ann@example.com", labels: { stage: "production" } },
    },
    async act({ administration, actor, announce, catalog, keyOf, now_ms, organizationOf, withSlug }, input) {
      const { id, version, ...changes } = input;
      const key = await keyOf(id);
      const { models, aliases } = changes.models == null ? noModels : await catalog();
      const change = changeOf(changes, key, { models, aliases, now_ms: now_ms() });
      if (key.revokedAt) fail(`The key ${key.id} is revoked and cannot be changed. Create a new one.`, "wrong_state");
      const organization = await organizationOf(key.organizationId);
      refuseLongerLife(change.expiresAt, organization, key.secrets[0]?.createdAt.getTime() ?? now_ms());
      const updated = await administration.updateKey(key.id, change, actor, version ?? null);
      if (updated && "stale" in updated) {
        const last = await lastChange(administration, { id: organization.id, subject: key.id });
        const current = { ...updated.stale, organization: organization.slug };
        return stale(`Key '${current.name}'`, { read: version, last }, Key, current);
      }
      await announce(key.id);
      return withSlug(updated ?? noKey(key.id));
    },
  }),
  verb({
    name: "rotateKey",
    route: "POST /keys/{id}/rotate",
    summary: "Give a key a new secret",
    description: "The ID stays. The old secret works until its grace ends, or until it is revoked.",
    roles: keepers,
    onKey: "rotate",
    kind: "act",
    faults: ["resource_not_found", "wrong_state"],
    takes: Type.Object({ ...oneKey, grace }),
    answers: NewKey,
    example: { takes: { id: examples.key, grace: "1h" }, answer: exampleNew },
    async act(context, input) {
      const { administration, announce, keyOf, random, withSlug } = context;
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
      return { ...(await withSlug(key ?? noKey(id))), key: secret };
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
    example: { takes: { id: examples.key }, answer: { ...exampleKey, revokedAt: examples.at } },
    async act({ administration, actor, announce, keyFor, withSlug }, input) {
      // Only a key that may be rotated has secrets that a rotation replaced.
      const { id } = await keyFor(input.id, input.old ? "rotate" : "revoke");
      const key = await administration.revokeKey({ id, old: input.old === true, actor });
      await announce(id);
      return withSlug(key ?? noKey(id));
    },
  }),
] as const;

const day_ms = 86_400_000;

/** Refuses fields that people may not choose for their own keys. */
function refuseChoices(input: { [Member in "expires" | "team" | "limits" | "owner" | "person"]?: unknown }): void {
  for (const member of ["team", "limits", "owner", "person"] as const)
    if (input[member] != null) fail(`A key of your own has no '${member}' that you choose. Leave it out.`);
  if (input.expires == null) fail("A key of your own needs 'expires', the instant of its end.");
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
  const found = await context.people.findPerson(person);
  const membership = found?.memberships.find(({ organizationId }) => organizationId === id);
  if (!found || !membership)
    return fail(
      `${slug} has no member '${parse.excerpt(person)}'. To list its people, run: sluice person list --org ${slug}`,
      "resource_not_found",
    );
  return { personId: found.person.id, team: membership.team?.id ?? null };
}

const noModels: Pick<ManagedCatalog, "models" | "aliases"> = { models: [] };

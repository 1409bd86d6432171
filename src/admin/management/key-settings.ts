/** The settings of a key, and the verbs that create a key and change its settings. */

import Type from "typebox";
import { secretOf } from "../../core/auth/credential.ts";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import { scopes } from "../../core/store/directory.ts";
import { idOf } from "../../core/store/ids.ts";
import { exampleOf } from "../store/example.ts";
import type { StoredKey } from "../store/key.ts";
import type { Organization } from "../store/organization.ts";
import { flag, required } from "./command.ts";
import { isClosed, type ManagedCatalog, type ManagementContext, noKey, reusedKey } from "./context.ts";
import { newSecret } from "./credential.ts";
import { fail } from "./error.ts";
import { Key, keyFlag, NewKey, oneKey } from "./key.ts";
import { allow_from, changeOf, keyChanges, labels, modelList, newKeyOf, owner, scopeList } from "./key-change.ts";
import { keyFacts, newKeySaid } from "./key-words.ts";
import { limitValueChanges } from "./limit-shape.ts";
import { newLimits } from "./limits.ts";
import { pageOrganizations } from "./organizations.ts";
import * as parse from "./parse.ts";
import { personIdOf, personNamed } from "./person-named.ts";
import { examples, keepers, managers, moment, name, words } from "./shapes.ts";
import { withStanding } from "./standing.ts";
import { noTeam, teamNamed } from "./team.ts";
import { choiceOf, someChange, verbsOf } from "./verb.ts";
import { changed, type VersionedKind } from "./version.ts";

const verb = verbsOf("Keys");

const ownerFlag = flag("--owner <owner>", "the owner, as free text");

export const createKey = verb({
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
    const { administration, actor, catalog, keyOf, newUuid, now_ms, openOrganization } = context;
    const { models, aliases } = input.models == null ? noModels : await catalog();
    const wanted = newKeyOf(input, { models, aliases, now_ms: now_ms() });
    const organization = await openOrganization(input.organization);
    refuseLongerLife(wanted.expiresAt, organization, now_ms());
    if (context.person !== null) refuseChoices(input);
    const holder = await holderOf(context, organization, { ...input, person: context.person ?? input.person });
    const named = holder ? holder.team : input.team;
    const teamId = named == null ? null : (await teamNamed(context, named, organization)).id;
    const limits = await newLimits(context, organization, { limits: input.limits, whose: "key" });
    const secret = newSecret(context, "slk_");
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
});

export const updateKey = verb({
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
      ...keyChanges,
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
});

const listedKey = (
  context: ManagementContext,
  id: string,
  team = "",
): VersionedKind<StoredKey, typeof Key, "no_team"> => ({
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

/**
 * Refuses an expiry after the instant at which the organization's policy ends the key. Such an expiry would never take
 * effect, so it is probably a mistake.
 */
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

/** The person of a new key, and the person's team in the organization; null: a service key. */
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
  return { personId: found.id, team: membership.team?.id ?? null };
}

const noModels: Pick<ManagedCatalog, "models" | "aliases"> = { models: [] };

/** The verbs that change an organization's name, its state, and its policies for keys and content. */
import Type from "typebox";
import { nullable } from "../../core/protocol/shapes/contract.ts";
import type { Policies } from "../store/organization.ts";
import { flag } from "./command.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import { change, changeOrganization, type OrganizationChange, sent } from "./organization-change.ts";
import {
  acme,
  findOrganization,
  type Organization,
  organizationFlag,
  policyFacts,
  shownOrganization,
} from "./organizations.ts";
import { examples, name, oneOrganization, slug } from "./shapes.ts";
import { confirmation, someChange, verbsOf } from "./verb.ts";

const verb = verbsOf("Organizations");

const statusWords = ({ slug, status }: Organization) => `Organization ${slug} is ${status}.\n`;

/** Ten years: the longest time that a policy can set. A policy that never ends a key is null. */
const policyDays_max = 3650;
const days = (description: string) =>
  Type.Optional(nullable(Type.Integer({ minimum: 1, maximum: policyDays_max, description })));

export const organizationChangeVerbs = [
  verb({
    name: "suspendOrganization",
    route: "POST /organizations/{organization}/suspend",
    summary: "Suspend an organization",
    description: "Ends its running requests, and refuses new ones until it is resumed.",
    ...change,
    takes: Type.Object(oneOrganization),
    example: { takes: sent, answer: { ...acme, status: "suspended", version: 2 } },
    command: {
      words: "org suspend",
      description: "suspend an organization; its requests are refused until you resume it",
      takes: { organization: organizationFlag },
      says: statusWords,
    },
    act: (context, input) => withStatus(context, input, "suspended"),
  }),
  verb({
    name: "resumeOrganization",
    route: "POST /organizations/{organization}/resume",
    summary: "Resume an organization",
    description: "Its requests are served again.",
    ...change,
    takes: Type.Object(oneOrganization),
    example: { takes: sent, answer: { ...acme, version: 3 } },
    command: {
      words: "org resume",
      description: "resume a suspended organization",
      takes: { organization: organizationFlag },
      says: statusWords,
    },
    act: (context, input) => withStatus(context, input, "active"),
  }),
  verb({
    name: "renameOrganization",
    route: "PATCH /organizations/{organization}",
    summary: "Rename an organization",
    description:
      "What is left out stays. Its ID, keys, records and reports stay too. Its old slug stops working, and is never given to another organization.",
    ...change,
    faults: ["resource_not_found", "already_exists", "wrong_state", "version_conflict"],
    takes: Type.Object(
      {
        ...oneOrganization,
        slug: Type.Optional(nullable(slug("1 to 63 lowercase letters, digits, and hyphens."))),
        name: Type.Optional(nullable(name("Display name."))),
      },
      someChange,
    ),
    example: {
      takes: { ...sent, slug: "acme-eu" },
      answer: { ...acme, slug: "acme-eu", formerSlugs: ["acme"], version: 2 },
    },
    command: {
      words: "org rename",
      description: "change the slug or the name of an organization; its ID, keys and records stay",
      takes: {
        organization: organizationFlag,
        slug: flag("--slug <slug>", "new short name; the old one stops working, and is never given to another"),
        name: flag("--name <name>", "new display name"),
      },
      needsOneOf: "--slug or --name",
      versioned: "organization",
      says: ({ id, slug, name }) => `Organization ${id} is now ${slug} (${name}).\n`,
    },
    async act(context, input) {
      const { slug, name } = input;
      if (slug == null && name == null) fail("Specify the organization's new slug or name.");
      const names = { ...(slug == null ? {} : { slug }), ...(name == null ? {} : { name }) };
      return changeOrganization(context, input, (id, version) =>
        context.administration.renameOrganization(id, names, context.actor, version),
      );
    },
  }),
  verb({
    name: "updatePolicies",
    route: "PATCH /organizations/{organization}/policies",
    summary: "Change when an organization's keys expire, and whether responses are stored",
    description:
      "What is left out stays; null removes a limit. Limits apply at once, to existing keys too; keys that a limit ended work again when it is removed. If content is not kept, stored responses are deleted before this is answered.",
    ...change,
    takes: Type.Object(
      {
        ...oneOrganization,
        key_lifetime_max_days: days("How long a key works from when it is made or rotated."),
        key_unused_max_days: days("How long a key works from its last use, or from its creation."),
        keeps_content: Type.Optional(nullable(Type.Boolean({ description: "False: no word is stored." }))),
      },
      someChange,
    ),
    example: {
      takes: { ...sent, key_lifetime_max_days: 90 },
      answer: { ...acme, keyLifetimeMaxDays: 90, version: 3 },
    },
    command: {
      words: "org policy",
      description: "show or set when the keys of an organization expire, and whether responses are stored",
      takes: {
        organization: organizationFlag,
        keyLifetimeMaxDays: {
          ...flag("--key-lifetime <days>", "key expiry, from when a key is made or rotated: 90d, or none for never"),
          unit: "d",
          none: "none",
        },
        keyUnusedMaxDays: {
          ...flag("--key-unused <days>", "disable unused keys, so long after the last use: 30d, or none for never"),
          unit: "d",
          none: "none",
        },
        keepsContent: {
          ...flag("--content <keep|none>", "none stops storing responses, and deletes those that are stored"),
          words: { keep: true, none: false },
        },
      },
      reads: findOrganization,
      versioned: "organization",
      says: (found, { organization: _, ...changes }) => ({
        pieces: [{ facts: policyFacts(found) }, ...(Object.keys(changes).length === 0 ? [] : endedBy(found))],
      }),
      help: `
Examples:
  $ sluice org policy acme --key-lifetime 90d --key-unused 30d
  $ sluice org policy acme --key-unused none
  $ sluice org policy acme --content none`,
    },
    async act(context, input) {
      const { keyLifetimeMaxDays, keyUnusedMaxDays, keepsContent } = input;
      const policies: Partial<Policies> = {
        ...(keyLifetimeMaxDays === undefined ? {} : { keyLifetimeMaxDays }),
        ...(keyUnusedMaxDays === undefined ? {} : { keyUnusedMaxDays }),
        ...(keepsContent == null ? {} : { keepsContent }),
      };
      if (Object.keys(policies).length === 0) fail("Specify which policy to change.");
      const updated = await changeOrganization(context, input, (id, version) =>
        context.administration.setPolicies(id, policies, context.actor, version),
      );
      if (!updated.keepsContent) await context.administration.purgeContent(updated.id);
      return updated;
    },
  }),
  verb({
    name: "closeOrganization",
    route: "POST /organizations/{organization}/close",
    summary: "Close an organization",
    description:
      "Permanent. Its keys are revoked, running requests end, and nothing can be created or changed in it. Its records and reports are kept for 13 months. After 15 months, everything is deleted except the audit log and its slug, which is never given to another. Repeating it changes nothing.",
    ...change,
    takes: Type.Object(oneOrganization),
    example: {
      takes: sent,
      answer: { ...acme, status: "closed", plan: null, closedAt: examples.at, version: 4 },
    },
    command: {
      words: "org close",
      description: "close an organization for good: its keys are revoked; its records are kept for 13 months",
      takes: { organization: organizationFlag },
      versioned: "organization",
      confirms: confirmation(findOrganization, {
        question: ({ slug }) =>
          `Close ${slug} for good? Its keys are revoked, its stored responses are deleted, and it cannot be opened again.`,
        refusal: "Nothing was closed.",
        needsYes: "Closing an organization cannot be undone. To close it without a prompt, use --yes.",
      }),
      says: ({ slug }) => `Organization ${slug} is closed.\n`,
    },
    async act(context, input) {
      const { administration, actor, organizationOf } = context;
      const organization = await organizationOf(input.organization);
      const closed =
        organization.status === "closed"
          ? await shownOrganization(context, organization)
          : await changeOrganization(context, input, (id, version) =>
              administration.closeOrganization(id, actor, version),
            );
      await administration.purgeContent(closed.id);
      return closed;
    },
  }),
] as const;

/** Sentences that say how to list the keys that a change of policies has ended. */
function endedBy({ slug, keyLifetimeMaxDays, keyUnusedMaxDays }: Organization): string[] {
  const states = [
    ...(keyLifetimeMaxDays === null ? [] : ["expired"]),
    ...(keyUnusedMaxDays === null ? [] : ["unused"]),
  ];
  const lines = states.map(
    (state) => `To list keys that it ended, run: sluice key list --org ${slug} --state ${state}\n`,
  );
  return lines.length === 0 ? [] : [lines.join("")];
}

async function withStatus(
  context: ManagementContext,
  input: OrganizationChange,
  status: "active" | "suspended",
): Promise<Organization> {
  const organization = await context.organizationOf(input.organization);
  if (organization.status === status && input.version === undefined) return shownOrganization(context, organization);
  return changeOrganization(context, input, (id, version) =>
    context.administration.setOrganizationStatus(id, status, context.actor, version),
  );
}

/** The file of `sluice apply`: bytes → what organizations are to be, or all that is wrong with it. */
import type { Static } from "typebox";
import Type from "typebox";
import { Check } from "typebox/value";
import type { WantedOrganization } from "../management/difference.ts";
import type { WantedKey } from "../management/key-difference.ts";
import { policyDays_max } from "../management/organization-changes.ts";
import type { Shape } from "../schema/shape.ts";
import { organizationStatuses } from "../store/directory.ts";
import { units_max } from "../store/ledger.ts";
import { reportOffences } from "./diagnose.ts";
import { ConfigurationError, Problems } from "./problem.ts";
import { readYaml } from "./yaml.ts";

const organizations_max = 10_000;
const keys_max = 10_000;

const days = () => Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: policyDays_max }), Type.Null()]));

const texts = (maxItems: number) =>
  Type.Optional(Type.Union([Type.Array(Type.String({ minLength: 1, maxLength: 200 }), { maxItems }), Type.Null()]));
const text = () => Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 200 }), Type.Null()]));

/** The verbs check what these texts mean. */
const KeyEntry = Type.Object(
  {
    scopes: Type.Optional(Type.Array(Type.String({ minLength: 1, maxLength: 63 }), { maxItems: 10 })),
    models: texts(1000),
    expires: text(),
    owner: text(),
    labels: Type.Optional(Type.Record(Type.String(), Type.Union([Type.String({ maxLength: 200 }), Type.Null()]))),
    allowed_addresses: texts(100),
  },
  { additionalProperties: false },
);

const Entry = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 200 })),
    plan: Type.Optional(Type.Union([Type.String({ minLength: 1, maxLength: 63 }), Type.Null()])),
    status: Type.Optional(Type.Enum([...organizationStatuses], { type: "string" })),
    extra_usage_cap_units: Type.Optional(Type.Union([Type.Integer({ minimum: 1, maximum: units_max }), Type.Null()])),
    key_lifetime_max_days: days(),
    key_unused_max_days: days(),
    keeps_content: Type.Optional(Type.Boolean()),
    keys: Type.Optional(
      Type.Record(Type.String({ pattern: "^\\S(?:.{0,198}\\S)?$" }), KeyEntry, {
        additionalProperties: false,
        maxProperties: keys_max,
        "x-key": "must be a name: 1 to 200 characters, without spaces at its ends",
      }),
    ),
  },
  { additionalProperties: false },
);

const OrganizationsFile = Type.Object(
  {
    organizations: Type.Record(Type.String({ pattern: "^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$" }), Entry, {
      additionalProperties: false,
      maxProperties: organizations_max,
      "x-key": "must be a slug: 1 to 63 lowercase letters, digits, and hyphens",
    }),
  },
  { additionalProperties: false },
);

/** `path` stands before every problem. Throws ConfigurationError. */
export function readOrganizationsFile(bytes: Uint8Array, path: string): WantedOrganization[] {
  const problems = new Problems(path);
  const yaml = readYaml(bytes, { environment: {}, readFile: () => null }, problems);
  if (yaml) reportOffences(OrganizationsFile as Shape, yaml, problems);
  if (problems.any || !yaml || !Check(OrganizationsFile, yaml.value)) throw new ConfigurationError(problems.lines());
  return Object.entries(yaml.value.organizations).map(([slug, entry]) => wanted(slug, entry));
}

function wanted(slug: string, entry: Static<typeof Entry>): WantedOrganization {
  const { name, plan, status, extra_usage_cap_units: capUnits } = entry;
  const { key_lifetime_max_days, key_unused_max_days, keeps_content, keys } = entry;
  return {
    slug,
    ...(keys === undefined ? {} : { keys: Object.entries(keys).map(([name, key]) => wantedKey(name, key)) }),
    ...(name === undefined ? {} : { name }),
    ...(plan === undefined ? {} : { plan }),
    ...(status === undefined ? {} : { status }),
    ...(capUnits === undefined ? {} : { capUnits }),
    ...(key_lifetime_max_days === undefined ? {} : { keyLifetimeMaxDays: key_lifetime_max_days }),
    ...(key_unused_max_days === undefined ? {} : { keyUnusedMaxDays: key_unused_max_days }),
    ...(keeps_content === undefined ? {} : { keepsContent: keeps_content }),
  };
}

function wantedKey(name: string, { allowed_addresses, ...entry }: Static<typeof KeyEntry>): WantedKey {
  const addresses = allowed_addresses === undefined ? {} : { addresses: allowed_addresses };
  // Which scopes there are, the verb says.
  return { name, ...entry, ...addresses } as WantedKey;
}

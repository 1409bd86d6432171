/**
 * The commands of the verbs that declare none, because the command line has one of its own making for them. Pure;
 * test/admin/console/typed-commands.test.ts holds them to the command line.
 */

type Given = Record<string, unknown>;

/** A place without a value shows its name. Of the options, undefined is left out, true stands alone, and null is `none`. */
export interface Typed {
  words: string;
  places?: Given;
  options?: Given;
}

const or = (value: unknown, instead: unknown) => (value === null ? instead : value);

export const typedCommands: Record<string, (input: Given) => Typed> = {
  tryModel: ({ model, message, key }) => ({
    words: "try",
    places: { model },
    options: { message, key: key ?? undefined },
  }),
  getFleet: () => ({ words: "fleet" }),
  createOrganization: ({ slug, name, plan }) => ({ words: "org create", places: { slug }, options: { name, plan } }),
  closeOrganization: ({ organization }) => ({ words: "org close", places: { organization }, options: { yes: true } }),
  setPlan: ({ organization, plan }) =>
    plan === null
      ? { words: "org plan", places: { organization }, options: { none: true } }
      : { words: "org plan", places: { organization, plan } },
  setExtraUsage: ({ organization, cap_units: cap }) => ({
    words: "org extra-usage",
    places: { organization, state: cap == null ? "off" : "on" },
    options: { cap: cap ?? undefined },
  }),
  updatePolicies: ({ organization, ...policies }) => ({
    words: "org policy",
    places: { organization },
    options: {
      "key-lifetime": policies.key_lifetime_max_days,
      "key-unused": policies.key_unused_max_days,
      content: policies.keeps_content == null ? undefined : policies.keeps_content ? "keep" : "none",
    },
  }),
  updateKeyDefault: ({ organization, limits }) => ({
    words: "org key-limits",
    places: { organization },
    options: { limit: limits },
  }),
  updateMemberDefault: ({ organization, limits }) => ({
    words: "org member-limits",
    places: { organization },
    options: { limit: limits },
  }),
  createKey: ({ organization, name, expires, models, owner, team, limits }) => ({
    words: "key create",
    options: { org: organization, name, models, expires, owner, team, limit: limits },
  }),
  updateKey: ({ id, name, scopes, models, expires, owner, addresses }) => ({
    words: "key update",
    places: { id },
    options: {
      name,
      scopes,
      models: or(models, "all"),
      expires: or(expires, "never"),
      ...(owner === null ? { "no-owner": true } : { owner }),
      "allow-from": or(addresses, "all"),
    },
  }),
  updateKeyBudget: ({ id, team, limits }) => ({
    words: "key update",
    places: { id },
    options: { ...(team === null ? { "no-team": true } : { team }), limit: limits },
  }),
  rotateKey: ({ id, grace }) => ({ words: "key rotate", places: { id }, options: { grace: grace ?? undefined } }),
  revokeKey: ({ id, old }) => ({ words: "key revoke", places: { id }, options: { old, yes: true } }),
  readUsage: ({ organization }) => ({ words: "usage show", places: { organization } }),
};

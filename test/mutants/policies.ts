// Mutants of the policies of organizations for their keys and for the content that is stored for them, and of renaming
// and closing an organization.

import type { Mutant } from "./mutant.ts";

const responses = "db/migrations/0001_baseline/responses.sql";
const authenticate = "test/core/auth/authenticate.test.ts";
const store = "test/core/store/policies.test.ts";
const served = "test/core/http/policies.test.ts";
const life = "docs/design/keys.md, Keys end by policy";
const organizations = "docs/design/keys.md, Organizations";

export const policies: Mutant[] = [
  {
    name: "a key that is too old is served",
    file: "src/core/auth/verdict.ts",
    find: '  if (over(ends.lifetimeAt)) return "too_old";\n',
    replace: "",
    caughtBy: [`${authenticate} > a key that ends by policy`],
    rule: life,
  },
  {
    name: "a key that nobody used is served",
    file: "src/core/auth/verdict.ts",
    find: '  if (over(ends.unusedAt)) return "unused";\n',
    replace: "",
    caughtBy: [`${authenticate} > a key that ends by policy`],
    rule: life,
  },
  {
    name: "a cached answer outlives the end by policy",
    file: "src/core/auth/verdict.ts",
    find: "const all = [key.expiresAt, secret.expiresAt, ends.lifetimeAt, ends.unusedAt, confirmed];",
    replace: "const all = [key.expiresAt, secret.expiresAt, confirmed];",
    caughtBy: [`${authenticate} > a key that ends by policy`],
    rule: life,
  },
  {
    name: "a use is noted with the others, however long ago the last one was",
    file: "src/core/auth/verdict.ts",
    find: "  if (ends.unusedAt === null) return false;\n",
    replace: "  if (ends.unusedAt !== undefined) return false;\n",
    caughtBy: [`${authenticate} > never ends within its days after a use`],
    rule: life,
  },
  {
    name: "a request does not wait for the note of its use",
    file: "src/core/auth/remembered.ts",
    find: 'await within(work, options.note_ms, "the store of last uses");',
    replace: "void work;",
    caughtBy: [`${authenticate} > has its use written down before it is served`],
    rule: life,
  },
  {
    name: "a use that must be noted is left to whoever is changing the key",
    file: "src/stores/postgres/directory.ts",
    find: 'how === "certain" ? touchingAll : touching',
    replace: "touching",
    caughtBy: [`${store} > a use that has to be noted waits`],
    rule: life,
  },
  {
    name: "a key ends as unused without the hour that a note may be late",
    file: "src/stores/postgres/key-life.ts",
    find: " + interval '${useNoted_ms} ms')`",
    replace: ")`",
    caughtBy: [`${store} > end a key to the millisecond`],
    rule: life,
  },
  {
    name: "a rotation does not begin anew",
    file: "src/stores/postgres/key-life.ts",
    find: '"(select max(s.created_at) from key_secret s',
    replace: '"(select min(s.created_at) from key_secret s',
    caughtBy: [`${store} > a rotation begins anew`],
    rule: life,
  },
  {
    name: "a sign-in that ended by itself is listed as active",
    file: "src/stores/postgres/key-life.ts",
    find: "${lifetimeAt}, ${signInEndsAt})`",
    replace: "${lifetimeAt})`",
    caughtBy: ["test/core/store/sign-ins.test.ts > has ended by itself is expired in lists"],
    rule: "docs/identity.md, Tokens",
  },
  {
    name: "an expiry beyond the longest lifetime is taken",
    file: "src/admin/management/key-settings.ts",
    find: "  if (expiresAt > last)\n",
    replace: '  if (expiresAt > last && slug === "")\n',
    caughtBy: [`${served} > an organization-admin sees them`],
    rule: life,
  },
  {
    name: "whoever changes a key overwrites what he has not seen",
    file: "src/stores/postgres/change.ts",
    find: 'if (typeof version === "number" && versionOf(row) !== version) return',
    replace: "if (version === -1) return",
    caughtBy: [`${store} > is refused where somebody changed the key since`],
    rule: "docs/design/keys.md, Changes and last use",
  },
  {
    name: "a slug that was given up is another's",
    file: "src/stores/postgres/organizations.ts",
    find: "if (!made || (await isFormer(tx, made))) throw",
    replace: "if (!made) throw",
    caughtBy: [`${store} > keeps the ID and the keys`],
    rule: organizations,
  },
  {
    name: "a closed organization is changed",
    file: "src/stores/postgres/organization-change.ts",
    find: 'row?.status === "closed" ? "closed" : (row ?? null)',
    replace: "row ?? null",
    caughtBy: [`${store} > revokes every key`],
    rule: organizations,
  },
  {
    name: "a key is made in an organization that is closed",
    file: "src/stores/postgres/keys.ts",
    find: '  if (row?.status === "closed") return "closed";\n',
    replace: "",
    caughtBy: [`${store} > revokes every key`],
    rule: organizations,
  },
  {
    name: "an organization that keeps no content may look for what it stored",
    file: "src/features/responses/records.ts",
    find: "const keeps = caller.organization.keepsContent && dependencies.responses.settings().store;",
    replace: "const keeps = dependencies.responses.settings().store;",
    caughtBy: [`${served} > answers store: false`],
    rule: "docs/design/protocols.md, Responses state",
  },
  {
    name: "what is being stored while nothing is to be kept any more stays",
    file: responses,
    find: "where id = owner and (not keeps_content or status = 'closed')) then\n      return true;",
    replace: "where id = owner and status = 'closed') then\n      return true;",
    caughtBy: [`${store} > loses what is stored`],
    rule: "docs/design/protocols.md, Responses state",
  },
];

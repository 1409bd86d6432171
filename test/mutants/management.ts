// Lines of administration: who may, what is in sight, and what is written once.

import type { Mutant } from "./mutant.ts";

const served = "test/core/http/management.test.ts";
const rule = "docs/design/keys.md, Who administers";
const kinds = "docs/access.md, Kinds of keys";
const ownLimits = "docs/access.md, Limits of one's own";
const raising = "test/admin/management/own-limits.test.ts";

export const management: Mutant[] = [
  {
    name: "the kind of a key refuses nothing",
    file: "src/admin/management/verb.ts",
    find: "if (onKey) await context.keyFor(",
    replace: "if (onKey) await context.keyOf(",
    caughtBy: ["test/admin/management/key-kinds.test.ts > gets a secret by a rotation"],
    rule: kinds,
  },
  {
    name: "a revoked sign-in keeps what the issuer gave",
    file: "src/stores/postgres/keys.ts",
    find: "if (uuid !== null && !input.old) await endRow(",
    replace: "if (uuid !== null && input.old) await endRow(",
    caughtBy: ["test/admin/management/key-kinds.test.ts > revoking a sign-in ends it for good"],
    rule: kinds,
  },
  {
    name: "people raise what counts for themselves",
    file: "src/stores/postgres/own-limits.ts",
    find: "if (own === null) return db;",
    replace: "if (own === null || own) return db;",
    caughtBy: [`${raising} > a higher limit of members`],
    rule: ownLimits,
  },
  {
    name: "another team with the same limits stands for one's own",
    file: "src/admin/store/own-limits.ts",
    find: "place === one.place && team === one.team",
    replace: "place === one.place",
    caughtBy: [`${raising} > which has used nothing yet`],
    rule: ownLimits,
  },
  {
    name: "a new key of one's own is compared with nothing",
    file: "src/admin/store/own-limits.ts",
    find: '(was.get(entrance) ?? was.get("new") ?? [])',
    replace: "(was.get(entrance) ?? [])",
    caughtBy: [`${raising} > a new key of her own with more`],
    rule: ownLimits,
  },
  {
    name: "a raise of one's own may last longer",
    file: "src/admin/store/own-limits.ts",
    find: "|| isLonger === true;",
    replace: "|| isLonger === null;",
    caughtBy: [`${raising} > that lasts longer`],
    rule: ownLimits,
  },
  {
    name: "every role may do what any role may",
    file: "src/admin/http/gate.ts",
    find: "if (roles.includes(role)) return;",
    replace: "if (roles.length > 1 || roles.includes(role)) return;",
    caughtBy: [`${served} > is for the roles that it names`],
    rule,
  },
  {
    name: "an organization-admin sees every organization",
    file: "src/admin/management/context.ts",
    find: "return within === null || within === organizationId;",
    replace: "return within === null || organizationId !== null;",
    caughtBy: [`${served} > shows an organization-admin nothing`],
    rule,
  },
  {
    name: "a list that names no organization is of all",
    file: "src/admin/management/context.ts",
    find: "return within ?? undefined;",
    replace: "return undefined;",
    caughtBy: [`${served} > a report is of the own organization`],
    rule,
  },
  {
    name: "an organization-admin is told of a team of another organization",
    file: "src/admin/management/team.ts",
    find: "const byId = found && isInSight(found.organizationId) ? found : null;",
    replace: "const byId = found;",
    caughtBy: [`${served} > a team of another organization is not there`],
    rule,
  },
  {
    name: "a repeat creates once more",
    file: "src/stores/postgres/acts.ts",
    find: "  if (made) return null;",
    replace: "  if (made || keyHash) return null;",
    caughtBy: [`${served} > with the same key creates nothing`],
    rule,
  },
  {
    name: "two acts take the same place in the audit log",
    file: "src/stores/postgres/acts.ts",
    find: "from audit_head for update`",
    replace: "from audit_head`",
    caughtBy: ["test/core/store/directory.test.ts > acts at once"],
    rule,
  },
  {
    name: "a key is served from any address",
    file: "src/core/auth/authenticate.ts",
    find: "if (verdict.admits?.(address) === false) throw",
    replace: "if (verdict.admits === null) throw",
    caughtBy: ["test/core/auth/authenticate.test.ts > a key with addresses"],
    rule: "docs/design/keys.md, From some addresses only",
  },
  {
    name: "a key that is used is stale by its creation",
    file: "src/stores/postgres/keys.ts",
    find: "coalesce(${apiKey.lastUsedAt}, ${apiKey.createdAt})",
    replace: "${apiKey.createdAt}",
    caughtBy: ["test/core/store/directory.test.ts > those that nobody uses are found"],
    rule: "docs/design/keys.md, Changes and last use",
  },
  {
    name: "an act that changes nothing is written down",
    file: "src/stores/postgres/keys.ts",
    find: "if (changed.length > 0) {",
    replace: "if (changed.length >= 0) {",
    caughtBy: ["test/core/store/directory.test.ts > sets what is named, tells authentication"],
    rule: "docs/design/keys.md, Changes and last use",
  },
];

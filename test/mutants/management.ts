// Lines of administration: who may, what is in sight, and what is written once.

import type { Mutant } from "./mutant.ts";

const served = "test/http/management.test.ts";
const rule = "docs/design/keys.md, Who administers";

export const management: Mutant[] = [
  {
    name: "every role may do what any role may",
    file: "src/api/management/gate.ts",
    find: "if (roles.includes(role)) return;",
    replace: "if (roles.length > 1 || roles.includes(role)) return;",
    caughtBy: [`${served} > is for the roles that it names`],
    rule,
  },
  {
    name: "an organization-admin sees every organization",
    file: "src/management/context.ts",
    find: "return within === null || within === organizationId;",
    replace: "return within === null || organizationId !== null;",
    caughtBy: [`${served} > shows an organization-admin nothing`],
    rule,
  },
  {
    name: "a list that names no organization is of all",
    file: "src/management/context.ts",
    find: "return within ?? undefined;",
    replace: "return undefined;",
    caughtBy: [`${served} > a report is of the own organization`],
    rule,
  },
  {
    name: "an organization-admin is told of a team of another organization",
    file: "src/management/team.ts",
    find: "const byId = found && isInSight(found.organizationId) ? found : null;",
    replace: "const byId = found;",
    caughtBy: [`${served} > a team of another organization is not there`],
    rule,
  },
  {
    name: "a repeat creates once more",
    file: "src/postgres/acts.ts",
    find: "  if (made) return null;",
    replace: "  if (made || keyHash) return null;",
    caughtBy: [`${served} > with the same key creates nothing`],
    rule,
  },
  {
    name: "two acts take the same place in the audit log",
    file: "src/postgres/acts.ts",
    find: "from audit_head for update`",
    replace: "from audit_head`",
    caughtBy: ["test/store/directory.test.ts > acts at once"],
    rule,
  },
  {
    name: "a key is served from any address",
    file: "src/auth/authenticate.ts",
    find: "if (verdict.admits?.(address) === false) throw",
    replace: "if (verdict.admits === null) throw",
    caughtBy: ["test/auth/authenticate.test.ts > a key with addresses"],
    rule: "docs/design/keys.md, From some addresses only",
  },
  {
    name: "a key that is used is stale by its creation",
    file: "src/postgres/keys.ts",
    find: "coalesce(${apiKey.lastUsedAt}, ${apiKey.createdAt})",
    replace: "${apiKey.createdAt}",
    caughtBy: ["test/store/directory.test.ts > those that nobody uses are found"],
    rule: "docs/design/keys.md, Changes and last use",
  },
  {
    name: "an act that changes nothing is written down",
    file: "src/postgres/keys.ts",
    find: "if (changed.length > 0) {",
    replace: "if (changed.length >= 0) {",
    caughtBy: ["test/store/directory.test.ts > sets what is named, tells authentication"],
    rule: "docs/design/keys.md, Changes and last use",
  },
];

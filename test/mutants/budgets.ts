// Lines of the limits of keys and teams: the ledger's SQL, tried on Postgres alone, and what is said of it.

import type { Mutant } from "./mutant.ts";

const verbs = "db/migrations/0004_ledger_verbs.sql";
const own = "db/migrations/0013_budgets.sql";
const book = "test/store/budgets.test.ts > budgets on postgres";
const said = "test/admission/limited-by.test.ts";
const rule = "docs/design/usage.md, Budgets";

const changed = "test/store/limits.test.ts > limits that change on postgres";
const changing = "docs/design/usage.md, Limits that change";

export const budgets: Mutant[] = [
  {
    name: "nobody is told of a limit that changes",
    file: own,
    find: "    perform usage_limits_changed(subject);\n    if is_limited",
    replace: "    if is_limited",
    caughtBy: [`${changed} a key, a team`],
    rule: changing,
  },
  {
    name: "nobody is told that what was used before a first limit is summed",
    file: own,
    find: "    perform usage_limits_changed(subject);\n    return true;",
    replace: "    return true;",
    caughtBy: [`${changed} what was used before`],
    rule: changing,
  },
  {
    name: "nobody is told of a lowered cap of extra usage",
    file: "src/postgres/organizations.ts",
    find: "        await extraUsageChanged(tx, id);\n",
    replace: "",
    caughtBy: [`${changed} a key, a team`],
    rule: changing,
  },
  {
    name: "a grant that is asked for again names no team",
    file: verbs,
    find: `, ',"' || hold.team_id || '"'`,
    replace: "",
    caughtBy: [`${changed} a grant says`],
    rule: changing,
  },
  {
    name: "a key's limit does not bind what its organization has room for",
    file: verbs,
    find: "room := least(room, room_own);",
    replace: "room := room;",
    caughtBy: [`${book} a key's five-hour limit`],
    rule,
  },
  {
    name: "extra usage relieves a key, too",
    file: verbs,
    find: "room_extra := least(room_extra, room_own);",
    replace: "room_extra := room_extra;",
    caughtBy: [`${book} extra usage counts`],
    rule,
  },
  {
    name: "one request more of a team runs at a time",
    file: verbs,
    find: "coalesce(running[subject] >= book.concurrent[subject], false)",
    replace: "coalesce(running[subject] > book.concurrent[subject], false)",
    caughtBy: [`${book} a team's limit counts`],
    rule,
  },
  {
    name: "a hold grows past its key's limit",
    file: verbs,
    find: "room := least(room, book.limits[mine[(n + 2) / 3]][kind] - used[spot][kind] - held[spot][kind]);",
    replace: "room := room;",
    caughtBy: [`${book} a hold shrinks to the key's room`],
    rule,
  },
  {
    name: "a growth is not counted in its key's limit",
    file: verbs,
    find: "held[spot][kind] := held[spot][kind] + granted - step.held;",
    replace: "held[spot][kind] := held[spot][kind];",
    caughtBy: [`${book} a hold shrinks to the key's room`],
    rule,
  },
  {
    name: "a settlement charges a key past its limit",
    file: verbs,
    find: "room := least(room, unused - greatest(0, least(held[spot][kind], unused) - step.held));",
    replace: "room := room;",
    caughtBy: [`${book} what a node left behind`],
    rule,
  },
  {
    name: "a settlement leaves its hold on its team",
    file: verbs,
    find: "held[spot][kind] := held[spot][kind] - step.held;",
    replace: "held[spot][kind] := held[spot][kind];",
    caughtBy: [`${book} a key that changes its team`],
    rule,
  },
  {
    name: "what a key's running requests hold is settled use",
    file: verbs,
    find: "unused_own := least(unused_own, book.limits[subject][kind] - used[subject][kind]);",
    replace: "unused_own := least(unused_own, book.limits[subject][kind] - used[subject][kind] - held[subject][kind]);",
    caughtBy: [`${book} a key's five-hour limit`],
    rule,
  },
  {
    name: "what a key used before it was limited does not count",
    file: own,
    find: "used[2][k] := used[2][k] + opening.units;",
    replace: "used[2][k] := used[2][k];",
    caughtBy: [`${book} a limit that is set later`],
    rule,
  },
  {
    name: "what ran before a key was limited is not held",
    file: own,
    find: "book.running[2] := book.running[2] + 1;",
    replace: "book.running[2] := book.running[2];",
    caughtBy: [`${book} a limit that is set later`],
    rule,
  },
  {
    name: "a key's ended week is forgotten",
    file: own,
    find: "        if k < 4 then\n          if book.starts_at[n][k] is not null then",
    replace: "        if k < 4 then\n          if false then",
    caughtBy: [`${book} a key's week ends`],
    rule,
  },
  {
    name: "a team of another organization is joined",
    file: "src/management/teams.ts",
    find: "if (byId && organization && byId.organizationId !== organization.id)",
    replace: "if (false)",
    caughtBy: ["test/http/budgets.test.ts > what cannot be"],
    rule,
  },
  {
    name: "a team's read that another's change went through stops the next change",
    file: "src/postgres/teams.ts",
    find: 'const isOther = typeof version === "number" && now.version !== version;',
    replace: "const isOther = now.version !== before.version;",
    caughtBy: ["test/store/teams.test.ts > a change that came between"],
    rule,
  },
  {
    name: "what somebody else has changed meanwhile is overwritten",
    file: "src/postgres/teams.ts",
    find: " || !isDeepStrictEqual(now, before)",
    replace: "",
    caughtBy: ["test/store/teams.test.ts"],
    rule,
  },
  {
    name: "what somebody else has changed of a team meanwhile is overwritten",
    file: "src/postgres/teams.ts",
    find: " || !isDeepStrictEqual(settable(now), settable(before))",
    replace: "",
    caughtBy: ["test/store/teams.test.ts"],
    rule,
  },
  {
    name: "the organization is named where the key resets as late",
    file: "src/admission/limited-by.ts",
    find: "(resetsAt_ms(one) > resetsAt_ms(last) ? one : last)",
    replace: "(resetsAt_ms(one) >= resetsAt_ms(last) ? one : last)",
    caughtBy: [said],
    rule,
  },
  {
    name: "a key's refusal takes the hint of room from its organization",
    file: "src/admission/ample-budget.ts",
    find: "return now_ms() - last.at_ms <= believed_ms && last.subjects",
    replace: "return last.subjects",
    caughtBy: [said],
    rule: "docs/design/metering.md, The life of a request",
  },
];

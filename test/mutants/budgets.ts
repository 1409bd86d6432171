// Lines of the limits of keys and teams: the ledger's SQL, tried on Postgres alone, and what is said of it.

import type { Mutant } from "./mutant.ts";

/** What migration 0029 replaced of earlier ones. */
const raised = "db/migrations/0029_raises.sql";

const verbs = "db/migrations/0004_ledger_verbs.sql";
const own = "db/migrations/0013_budgets.sql";
/** What migration 0026 replaced of both. */
const people = "db/migrations/0026_people_in_the_ledger.sql";
/** The newest definition of `usage_refresh_members`. */
const refreshing = "db/migrations/0034_what_belongs_to_a_person.sql";
const admissions = "db/migrations/0030_subjects_at_less_cost.sql";
const book = "test/core/store/budgets.test.ts > budgets on postgres";
const members = "test/core/store/members.test.ts > people on postgres";
const said = "test/core/admission/limited-by.test.ts";
const rule = "docs/design/usage.md, Budgets";

const changed = "test/core/store/limits.test.ts > limits that change on postgres";
const changing = "docs/design/usage.md, Limits that change";

const raises = "test/core/store/raises.test.ts > raises on postgres";

export const budgets: Mutant[] = [
  {
    name: "a raise counts at the instant of its end",
    file: raised,
    find: "where r.subject_id = s.id and r.ends_at > clock offset 0) r\n    loop",
    replace: "where r.subject_id = s.id and r.ends_at >= clock offset 0) r\n    loop",
    caughtBy: [`${raises} what runs grows no further`],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "a raise lowers what is above it",
    file: raised,
    find: "case when base < raised then raised else base end",
    replace: "coalesce(raised, base)",
    caughtBy: [`${raises} a raise never lowers`],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "an organization's raise counts for all that are on its plan",
    file: raised,
    find: "      admit.plan := admit.plan + behind[admit.owner];\n",
    replace: "      admit.plan := admit.plan + (select max(b) from unnest(behind) b);\n",
    caughtBy: [`${raises} an organization's raise stands`],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "what a node left behind is settled without the raise of its organization",
    file: raised,
    find: "      commands := raised.settles;\n",
    replace: "",
    caughtBy: [`${raises} what a node left behind`],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "what is settled late is charged without the raise of its organization",
    file: raised,
    find: "      late := raised.settles;\n",
    replace: "",
    caughtBy: [`${raises} what a node left behind`],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "nobody hears of a raise that ends",
    file: "src/stores/postgres/limits.ts",
    find: "where r.ends_at > $2::timestamptz and r.ends_at <= clock.at",
    replace: "where false and r.ends_at > $2::timestamptz",
    caughtBy: [`${raises} nodes are informed of a raise`],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "a node looks for ended raises every second alone",
    file: "src/core/admission/limits-in-force.ts",
    find: "Math.min(every_ms, Math.max(soonest_ms, last?.nextEnd_ms ?? every_ms))",
    replace: "every_ms",
    caughtBy: ["test/core/admission/limits.test.ts > a raise that ends"],
    rule: "docs/design/usage.md, Raises",
  },
  {
    name: "a request does not count for the person whose key it is",
    file: people,
    find: "array[key, members[array_position(keys, key)], teams",
    replace: "array[key, null, teams",
    caughtBy: [members],
    rule: "docs/design/usage.md, Budgets",
  },
  {
    name: "an organization's limits for its members count before those of a team",
    file: refreshing,
    find: "when t.team_id then 2 else 3 end",
    replace: "when t.team_id then 3 else 2 end",
    caughtBy: [members],
    rule: "docs/design/usage.md, Budgets",
  },
  {
    name: "a settlement leaves its hold on the person",
    file: admissions,
    find: "case when chain[2] = any (ids) then chain[2] end",
    replace: "null",
    caughtBy: [`${members} a person's keys share one limit exactly`],
    rule,
  },
  {
    name: "an organization's limits for its members are not looked at",
    file: refreshing,
    find: "where d.owner_id in (t.team_id, organization)",
    replace: "where d.owner_id = t.team_id",
    caughtBy: [`${members} a person's own limits count`],
    rule,
  },
  {
    name: "a person's own limits count behind those that all members have",
    file: refreshing,
    find: "select 1 as place, array[o.session_units",
    replace: "select 4 as place, array[o.session_units",
    caughtBy: [`${members} a person's own limits count`],
    rule,
  },
  {
    name: "a person's keys stay in the team that she has left",
    file: refreshing,
    find: "        and s.team_id is distinct from t.team_id",
    replace: "        and s.team_id is distinct from t.team_id and false",
    caughtBy: [`${members} a person's own limits count`],
    rule,
  },
  {
    name: "what a person's keys used before she was limited is not hers",
    file: people,
    find: "where s.member_id = subject) || subject",
    replace: "where s.member_id = subject and false) || subject",
    caughtBy: [`${members} key, person and team`],
    rule,
  },
  {
    name: "nodes hear of a person's limits by a key's ID",
    file: "src/stores/postgres/limits.ts",
    find: "when s.person_id is not null then 'per_'",
    replace: "when s.person_id is not null then 'key_'",
    caughtBy: [`${members} every node is informed`],
    rule: changing,
  },
  {
    name: "what runs of a key that is limited for the first time is held by its team",
    file: people,
    find: "place := array_position(book.subjects, subject);\n    for hold in",
    replace: "place := 2;\n    for hold in",
    caughtBy: [`${book} a key's first limit counts in the key alone`],
    rule,
  },
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
    file: people,
    find: "    perform usage_limits_changed(subject);\n    return true;",
    replace: "    return true;",
    caughtBy: [`${changed} what was used before`],
    rule: changing,
  },
  {
    name: "nobody is told of a lowered cap of extra usage",
    file: "src/stores/postgres/organizations.ts",
    find: "        await extraUsageChanged(tx, id);\n",
    replace: "",
    caughtBy: [`${changed} a key, a team`],
    rule: changing,
  },
  {
    name: "a grant that is asked for again names no team",
    file: raised,
    find: `, ',"' || hold.team_id || '"'`,
    replace: "",
    caughtBy: [`${changed} a grant says`],
    rule: changing,
  },
  {
    name: "a key's limit does not bind what its organization has room for",
    file: admissions,
    find: "for i in 1..count - 1 loop\n        room := least(",
    replace: "for i in 1..3 loop\n        room := least(",
    caughtBy: [`${book} a key's five-hour limit`],
    rule,
  },
  {
    name: "extra usage relieves a key, too",
    file: admissions,
    find: "for i in 4..count - 1 loop\n        room_extra",
    replace: "for i in 4..3 loop\n        room_extra",
    caughtBy: [`${book} extra usage counts`],
    rule,
  },
  {
    name: "one request more of a team runs at a time",
    file: admissions,
    find: "is_crowded := is_crowded or running[subject] >= book",
    replace: "is_crowded := is_crowded or running[subject] > book",
    caughtBy: [`${book} a team's limit counts`],
    rule,
  },
  {
    name: "a hold grows past its key's limit",
    file: verbs,
    find: "for i in step.first..cardinality(counters) - step.spare loop\n        room :=",
    replace: "for i in step.first..3 loop\n        room :=",
    caughtBy: [`${book} a hold shrinks to the key's room`],
    rule,
  },
  {
    name: "a growth is not counted in its key's limit",
    file: verbs,
    find: "for i in step.first..cardinality(counters) - step.spare loop\n          held[counters[i]]",
    replace: "for i in step.first..3 loop\n          held[counters[i]]",
    caughtBy: [`${book} a hold shrinks to the key's room`],
    rule,
  },
  {
    name: "a settlement charges a key past its limit",
    file: verbs,
    find: "for i in step.first..cardinality(counters) - step.spare loop\n        unused :=",
    replace: "for i in step.first..3 loop\n        unused :=",
    caughtBy: [`${book} what a node left behind`],
    rule,
  },
  {
    name: "a settlement leaves its hold on its team",
    file: verbs,
    find: "held[counters[i]] := held[counters[i]] - step.held;",
    replace: "held[counters[i]] := held[counters[i]] - case when i > 3 then 0 else step.held end;",
    caughtBy: [`${book} a key that changes its team`],
    rule,
  },
  {
    name: "what a key's running requests hold is settled use",
    file: verbs,
    find: "unused := least(unused, coalesce(plan_limits[1][i], limits[counters[i]]) - used[counters[i]]);",
    replace: "unused := least(unused, case when i <= 3 then plan_limits[1][i] else 0 end - used[counters[i]]);",
    caughtBy: [`${book} a key's five-hour limit`],
    rule,
  },
  {
    name: "what a key used before it was limited does not count",
    file: people,
    find: "book.used[k] := book.used[k] + opening.units;",
    replace: "book.used[k] := book.used[k];",
    caughtBy: [`${book} a limit that is set later`],
    rule,
  },
  {
    name: "what ran before a key was limited is not held",
    file: people,
    find: "book.running[place] := book.running[place] + 1;",
    replace: "book.running[place] := book.running[place];",
    caughtBy: [`${book} a limit that is set later`],
    rule,
  },
  {
    name: "a key's ended week is forgotten",
    file: "db/migrations/0003_ledger_windows.sql",
    find: "if book.starts_at[before + k] <> starts[k] then",
    replace: "if book.parents[subject] is null and book.starts_at[before + k] <> starts[k] then",
    caughtBy: [`${book} a key's week ends`],
    rule,
  },
  {
    name: "a team of another organization is joined",
    file: "src/admin/management/team.ts",
    find: "if (byId && organization && byId.organizationId !== organization.id)",
    replace: "if (false)",
    caughtBy: ["test/core/http/budgets.test.ts > a change that is not possible"],
    rule,
  },
  {
    name: "a limit that somebody else has set meanwhile is overwritten",
    file: "src/admin/management/key-change.ts",
    find: "changedLimits(limits, now.limits)",
    replace: "changedLimits(limits, noBudget)",
    caughtBy: ["test/core/store/teams.test.ts > of two changes at once both count"],
    rule,
  },
  {
    name: "the organization is named where the key resets as late",
    file: "src/core/admission/limited-by.ts",
    find: "(resetsAt_ms(one) > resetsAt_ms(last) ? one : last)",
    replace: "(resetsAt_ms(one) >= resetsAt_ms(last) ? one : last)",
    caughtBy: [said],
    rule,
  },
  {
    name: "a key's refusal takes the hint of room from its organization",
    file: "src/core/admission/ample.ts",
    find: "(!this.#isOld(key.at_ms) && key.subjects",
    replace: "(key.subjects",
    caughtBy: [said],
    rule: "docs/design/metering.md, The life of a request",
  },
];

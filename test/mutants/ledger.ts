// Lines of the ledger's SQL. They are tried on Postgres alone, which is quicker to start than the embedded database.

import type { Mutant } from "./mutant.ts";

const file = "db/migrations/0004_ledger_verbs.sql";
const windows = "db/migrations/0003_ledger_windows.sql";
const book = "test/store/ledger.test.ts > the ledger on postgres";

export const ledger: Mutant[] = [
  {
    name: "a settlement takes what others hold of the week",
    file,
    find: "room := least(room, unused - greatest(0, least(total.held, unused) - hold.units));",
    replace:
      "room := least(room, case kind when 2 then unused else unused - greatest(0, least(total.held, unused) - hold.units) end);",
    caughtBy: [`${book} charged is what fits under the limit of the week`],
    rule: "docs/design/usage.md, Settlement",
  },
  {
    name: "a settlement passes a limit that was lowered",
    file,
    find: "charge := greatest(0, room);",
    replace: "charge := command.units;",
    caughtBy: [`${book} a limit that was lowered meanwhile`],
    rule: "docs/design/usage.md, Settlement",
  },
  {
    name: "a settlement leaves its hold on the month",
    file,
    find: "total.held := total.held - hold.units;",
    replace: "total.held := total.held - case kind when 3 then 0 else hold.units end;",
    caughtBy: [`${book} an organization without limits`],
    rule: "docs/design/metering.md, Rule 5: Settle exactly once",
  },
  {
    name: "an admission that comes after its settlement runs",
    file,
    find: "if command.request_id = any (over) or owned.extra_enabled is null then",
    replace: "if owned.extra_enabled is null then",
    caughtBy: [`${book} a request that was given up before its admission arrived`],
    rule: "docs/design/metering.md, Rule 2: Admit once, under the lock",
  },
  {
    name: "an admission does not see what others hold of the session",
    file,
    find: "room := least(room, limits[command.limits][kind] - total.used - total.held);",
    replace:
      "room := least(room, limits[command.limits][kind] - total.used - case kind when 1 then 0 else total.held end);",
    caughtBy: [`${book} a hold shrinks to what is left`],
    rule: "docs/design/metering.md, Rule 2: Admit once, under the lock",
  },
  {
    name: "a hold that shrinks is rounded up a token",
    file,
    find: "else (room - command.input_units) / command.price_output end;",
    replace: "else (room - command.input_units + command.price_output - 1) / command.price_output end;",
    caughtBy: [`${book} a hold shrinks to what is left`],
    rule: "docs/design/usage.md, Holds",
  },
  {
    name: "one request more than allowed runs at a time",
    file,
    find: "if billed is null or owned.running >= command.concurrent_limit then",
    replace: "if billed is null or owned.running > command.concurrent_limit then",
    caughtBy: [`${book} concurrency counts what runs`],
    rule: "docs/design/metering.md, Rule 2: Admit once, under the lock",
  },
  {
    name: "a hold grows past the week's end",
    file,
    find: "case kind when 4 then owned.extra_cap else limits[command.limits][kind] end - total.used - total.held);",
    replace:
      "case kind when 4 then owned.extra_cap when 2 then null else limits[command.limits][kind] end - total.used - total.held);",
    caughtBy: [`${book} a hold grows to a new total`],
    rule: "docs/design/metering.md, Rule 3: Grow to a total",
  },
  {
    name: "extra usage does not see what others hold of it",
    file,
    find: "room_extra := owned.extra_cap - total.used - total.held;",
    replace: "room_extra := owned.extra_cap - total.used;",
    caughtBy: [`${book} extra usage takes what the plan cannot`],
    rule: "docs/design/usage.md, Extra usage",
  },
  {
    name: "a checkpoint that was overtaken lowers the counts",
    file,
    find: "input_tokens = case when c.number > h.checkpoint then c.input_tokens else h.input_tokens end,",
    replace: "input_tokens = c.input_tokens,",
    caughtBy: [`${book} a lapsed hold is settled`],
    rule: "docs/design/metering.md, Rule 4: Checkpoints only rise",
  },
  {
    name: "a recovery does not look at the lease again under the lock",
    file,
    find: "from usage_hold h where h.request_id = any (lapsed) and h.lease_until <= clock);",
    replace: "from usage_hold h where h.request_id = any (lapsed));",
    caughtBy: [`${book} a hold whose lease was extended while a recovery waited`],
    rule: "docs/design/metering.md, Rule 6: Any node recovers",
  },
  {
    name: "a session lasts a microsecond too long",
    file: windows,
    find: "when a.session_starts_at + interval '5 hours' > at then a.session_starts_at",
    replace: "when a.session_starts_at + interval '5 hours' >= at then a.session_starts_at",
    caughtBy: [`${book} a request belongs to the windows it was admitted in`],
    rule: "docs/design/usage.md, Windows",
  },
];

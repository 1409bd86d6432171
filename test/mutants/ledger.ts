// Lines of the ledger's SQL. They are tried on Postgres alone, which is quicker to start than the embedded database.

import type { Mutant } from "./mutant.ts";

const file = "db/migrations/0004_ledger_verbs.sql";
const windows = "db/migrations/0003_ledger_windows.sql";
const book = "test/store/ledger.test.ts > the ledger on postgres";

export const ledger: Mutant[] = [
  {
    name: "a settlement takes what others hold of the week",
    file,
    find: "room := least(room, unused - greatest(0, least(held[place][kind], unused) - step.held));",
    replace:
      "room := least(room, case kind when 2 then unused else unused - greatest(0, least(held[place][kind], unused) - step.held) end);",
    caughtBy: [`${book} charged is what fits under the limit of the week`],
    rule: "docs/design/usage.md, Settlement",
  },
  {
    name: "a settlement passes a limit that was lowered",
    file,
    find: "room := greatest(0, room);",
    replace: "room := step.units;",
    caughtBy: [`${book} a limit that was lowered meanwhile`],
    rule: "docs/design/usage.md, Settlement",
  },
  {
    name: "a settlement leaves its hold on the month",
    file,
    find: "held[place][kind] := held[place][kind] - step.held;",
    replace: "held[place][kind] := held[place][kind] - case kind when 3 then 0 else step.held end;",
    caughtBy: [`${book} an organization without limits`],
    rule: "docs/design/metering.md, Rule 5: Settle exactly once",
  },
  {
    name: "an admission that comes after its settlement runs",
    file,
    find: "if step.is_over or book.extra_enabled[owner] is null then",
    replace: "if book.extra_enabled[owner] is null then",
    caughtBy: [`${book} a request that was given up before its admission arrived`],
    rule: "docs/design/metering.md, Rule 2: Admit once, under the lock",
  },
  {
    name: "an admission does not see what others hold of the session",
    file,
    find: "room := least(room, limits[step.plan][kind] - used[owner][kind] - held[owner][kind]);",
    replace:
      "room := least(room, limits[step.plan][kind] - used[owner][kind] - case kind when 1 then 0 else held[owner][kind] end);",
    caughtBy: [`${book} a hold shrinks to what is left`],
    rule: "docs/design/metering.md, Rule 2: Admit once, under the lock",
  },
  {
    name: "a hold that shrinks is rounded up a token",
    file,
    find: "else (room - step.input_units) / step.price_output end;",
    replace: "else (room - step.input_units + step.price_output - 1) / step.price_output end;",
    caughtBy: [`${book} a hold shrinks to what is left`],
    rule: "docs/design/usage.md, Holds",
  },
  {
    name: "one request more than allowed runs at a time",
    file,
    find: "if billed is null or running[owner] >= step.concurrent_limit then",
    replace: "if billed is null or running[owner] > step.concurrent_limit then",
    caughtBy: [`${book} concurrency counts what runs`],
    rule: "docs/design/metering.md, Rule 2: Admit once, under the lock",
  },
  {
    name: "a hold grows past the week's end",
    file,
    find: "room := least(room, case kind when 4 then book.extra_caps[owner] else limits[step.plan][kind] end",
    replace:
      "room := least(room, case kind when 4 then book.extra_caps[owner] when 2 then null else limits[step.plan][kind] end",
    caughtBy: [`${book} a hold grows to a new total`],
    rule: "docs/design/metering.md, Rule 3: Grow to a total",
  },
  {
    name: "extra usage does not see what others hold of it",
    file,
    find: "room_extra := book.extra_caps[owner] - used[owner][4] - held[owner][4];",
    replace: "room_extra := book.extra_caps[owner] - used[owner][4];",
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
    find: "array_agg(coalesce(n.ends_at[1] > clock and",
    replace: "array_agg(coalesce(n.ends_at[1] >= clock and",
    caughtBy: [`${book} a request belongs to the windows it was admitted in`],
    rule: "docs/design/usage.md, Windows",
  },
  {
    name: "an ended window is forgotten",
    file: windows,
    find: "if book.starts_at[owner][k] <> now.starts_at[k] then",
    replace: "if k <> 2 and book.starts_at[owner][k] <> now.starts_at[k] then",
    caughtBy: [`${book} a store whose clock steps back`],
    rule: "docs/design/metering.md, Rule 9: Windows are found, not reset",
  },
  {
    name: "what is settled late is not written",
    file: windows,
    find: "where (t.used, t.held) <> (p.used, p.held)",
    replace: "where t.used < p.used",
    caughtBy: [`${book} what is settled after its windows ended`],
    rule: "docs/design/metering.md, Rule 9: Windows are found, not reset",
  },
  {
    name: "a row of counters is never left",
    file: windows,
    find: "if book.updates[n] < 32 then",
    replace: "if book.updates[n] < 1000000 then",
    caughtBy: ["test/postgres/snapshot.test.ts > an old snapshot"],
    rule: "docs/design/metering.md, Counters that wait for no vacuum",
  },
  {
    name: "a sweep forgets who was running",
    file,
    find: "select h.* from unnest(seen) s (request_id) cross join lateral (",
    replace: "select h.* from unnest('{}'::uuid[]) s (request_id) cross join lateral (",
    caughtBy: [`${book} a sweep finds`],
    rule: "docs/design/metering.md, Rule 6: Any node recovers",
  },
];

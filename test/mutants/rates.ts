// Lines of the limits of a minute, of organizations, teams and keys, and of what waits to be told.

import type { Mutant } from "./mutant.ts";

const verbs = "db/migrations/0001_baseline/rates.sql";
const script = "src/stores/redis/rates-script.ts";
const laws = "test/core/store/rates.test.ts";
const redis = "test/stores/redis/rates.test.ts";
const together = "test/stores/redis/rates-together.test.ts";
const teams = "test/core/store/teams.test.ts > a key's credential";
const rule = "docs/design/usage.md, Sliding limits";

export const rates: Mutant[] = [
  {
    name: "in Redis the organization's limit decides alone",
    file: script,
    find: "taken = taken and subject.requests_over <= 0 and subject.tokens_over <= 0",
    replace: "taken = subject.requests_over <= 0 and subject.tokens_over <= 0",
    caughtBy: [`${laws} > redis what one refuses`],
    rule,
  },
  {
    name: "in the database the organization's limit decides alone",
    file: verbs,
    find: "taken := taken and coalesce(states[n].requests < claim.requests_limit, true)",
    replace: "taken := coalesce(states[n].requests < claim.requests_limit, true)",
    caughtBy: [`${laws} > postgres what one refuses`],
    rule,
  },
  {
    name: "in memory it is enough that one has room",
    file: "src/stores/memory/rates.ts",
    find: "places.every((place) => hasRoom(place, tokens))",
    replace: "places.some((place) => hasRoom(place, tokens))",
    caughtBy: [`${laws} > memory what one refuses`],
    rule,
  },
  {
    name: "a request begins with the tokens that the widest has left",
    file: script,
    find: "tokens = math.min(tokens, subject.tokens_max - state.tokens) end",
    replace: "tokens = subject.tokens_max - state.tokens end",
    caughtBy: [`${laws} > redis a request begins with what is left of the narrowest`],
    rule,
  },
  {
    name: "of equal limits the widest is named",
    file: "src/core/store/rates.ts",
    find: "retry_ms > last.retry_ms",
    replace: "retry_ms >= last.retry_ms",
    caughtBy: [`${laws} > memory of several full limits`],
    rule: "docs/design/usage.md, Budgets",
  },
  {
    name: "headers show the limit that has most left",
    file: "src/core/store/rates.ts",
    find: "one.remaining <= other.remaining",
    replace: "one.remaining >= other.remaining",
    caughtBy: [`${laws} > memory readings are those`],
    rule: "docs/design/usage.md, Budgets",
  },
  {
    name: "where the organization is limited, its keys are not",
    file: "src/core/admission/rates.ts",
    find: 'return [...own, { limitedBy: "organization"',
    replace: 'return [{ limitedBy: "organization"',
    caughtBy: ["test/core/admission/rates.test.ts > a key's own limit"],
    rule,
  },
  {
    name: "a key does not know its team's limits",
    file: "src/stores/postgres/directory.ts",
    find: '          ...ratesOf("team", row.team),\n',
    replace: "",
    caughtBy: [teams],
    rule,
  },
  {
    name: "a key's tokens a minute are not kept",
    file: "db/migrations/0001_baseline/ledger_subjects.sql",
    find: "        tokens_per_minute = one.limits[6]",
    replace: "        tokens_per_minute = s.tokens_per_minute",
    caughtBy: [teams],
    rule,
  },
  {
    name: "after an outage of Redis a key is counted what its organization did",
    file: verbs,
    find: "        and (subject = organization or usage_counts_in(own, keys, h.key_id, h.team_id, h.model))\n",
    replace: "",
    caughtBy: ["test/stores/postgres/rates.test.ts > postgres of a key and a team"],
    rule,
  },
  {
    name: "what takes more waits for the next request",
    file: "src/stores/redis/waiting-changes.ts",
    find: "if (takesMore || ",
    replace: "if (",
    caughtBy: [`${redis} > a correction that takes more`],
    rule,
  },
  {
    name: "Redis is asked twice a request",
    file: "src/stores/redis/rates.ts",
    find: "= waiting.take(organizationId);",
    replace: "= null;",
    caughtBy: [`${redis} > a request asks Redis once`],
    rule,
  },
  {
    name: "each request has a call of its own",
    file: "src/stores/redis/rates.ts",
    find: "if (call.takes.length === takes_max)",
    replace: "if (call.takes.length > 0)",
    caughtBy: [`${together} > the requests of one organization`],
    rule,
  },
  {
    name: "a call carries any number of requests",
    file: "src/stores/redis/rates.ts",
    find: "if (call.takes.length === takes_max)",
    replace: "if (call.takes.length === Infinity)",
    caughtBy: [`${together} > a call carries so many`],
    rule,
  },
  {
    name: "a request does not see what came before it in its call",
    file: script,
    find: "  if state then return state end\n",
    replace: "",
    caughtBy: [`${together} > what goes in one call`],
    rule,
  },
  {
    name: "what waits is forgotten at the end",
    file: "src/stores/redis/rates.ts",
    find: "close: () => waiting.flush(),",
    replace: "close: async () => {},",
    caughtBy: [`${redis} > a request asks Redis once`],
    rule,
  },
  {
    name: "what waits waits for ever",
    file: "src/stores/redis/waiting-changes.ts",
    find: "clock.after(wait_ms, () => void flush())",
    replace: "clock.after(wait_ms, () => {})",
    caughtBy: [`${redis} > a correction that no request comes for`],
    rule,
  },
  {
    name: "a process that stood still gives up what it has not sent",
    file: "src/core/time/countdown.ts",
    find: "this.#late_ms += this.#planned_ms + late_ms - counted_ms;",
    replace: "void counted_ms;",
    caughtBy: ["test/core/time/countdown.test.ts", "test/core/time/deadline.test.ts"],
    rule,
  },
];

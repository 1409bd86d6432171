import type { Mutant } from "./mutant.ts";

const attacks = "test/admin/console/operators.test.ts";
const signIns = "test/features/identity/console.test.ts";
const rule = "docs/console.md, Sessions";

export const consoleServer: Mutant[] = [
  {
    name: "the cookie alone opens the console",
    file: "src/admin/people/console-entrance.ts",
    find: "if (found && isPageSecret(found, call.request.headers.get(secretHeader))) return found;",
    replace: "if (found) return found;",
    caughtBy: [`${signIns} > opens nothing with the cookie alone`],
    rule,
  },
  {
    name: "a link opens the console as often as it is used",
    file: "src/features/identity/links.ts",
    find: "      pending.delete(code);\n",
    replace: "",
    caughtBy: [`${attacks} > opens by a link once`],
    rule,
  },
  {
    name: "a page of another origin signs in and changes things",
    file: "src/admin/people/console-entrance.ts",
    find: "if (!safe.includes(call.request.method)) requireOrigin(call, origins);",
    replace: "",
    caughtBy: [`${attacks} > lets no page of another origin`],
    rule: "docs/console.md, The port",
  },
  {
    name: "a page takes the end of its stream for an answer",
    file: "console/core/events.ts",
    find: 'if (event === "error") throw refusalFrom(answer.error, 0);',
    replace: "",
    caughtBy: ["test/admin/console/events.test.ts > the event `error` of a followed stream"],
    rule: "docs/console.md, The pages",
  },
  {
    name: "Try it calls with a key of the organization before",
    file: "console/core/calling-keys.ts",
    find: "key.organization === organization && ",
    replace: "",
    caughtBy: ["test/admin/console/calling-keys.test.ts > the keys of the organization that was chosen before"],
    rule: "docs/console.md, Trying a model",
  },
  {
    name: "a day that begins at 01:00 has the last hour of the day before",
    file: "console/core/zone.ts",
    find: "return this.clock_ms(start_ms) < clock_ms ? near_ms : start_ms;",
    replace: "return start_ms;",
    caughtBy: ["test/admin/console/spans.test.ts > put forward at midnight"],
    rule: "docs/reports.md, Period",
  },
  {
    name: "those who asked long ago stand before the open request",
    file: "src/stores/postgres/limit-requests.ts",
    find: "order by r.id desc limit",
    replace: "order by r.id limit",
    caughtBy: ["test/admin/management/limit-requests.test.ts > are listed with the newest first"],
    rule: "docs/limits.md, Asking for more",
  },
  {
    name: "a command to copy has words of the address that a shell would carry out",
    file: "console/core/command-line.ts",
    find: "`--${name} ${quoted(value)}`",
    replace: "`--${name} ${value}`",
    caughtBy: ["test/admin/console/command-line.test.ts > nothing of the page's address"],
    rule: "docs/console.md, The pages",
  },
  {
    name: "a block to copy has a model of the address that nobody offers",
    file: "console/core/clients.ts",
    find: "offered ? offered.includes(named) : ",
    replace: "offered ? true : ",
    caughtBy: ["test/admin/console/command-line.test.ts > nothing of the page's address"],
    rule: "docs/console.md, The pages",
  },
  {
    name: "two hours have one name where clocks are put back",
    file: "console/core/range.ts",
    find: "zone.clock_ms(at_ms) === zone.clock_ms(at_ms - hour_ms)",
    replace: "false",
    caughtBy: ["test/admin/console/spans.test.ts > is of hours up to two days"],
    rule: "docs/reports.md, Period",
  },
];

import type { Mutant } from "./mutant.ts";

const images = "test/inference/image-url.test.ts";
const targets = "test/attacks/targets.test.ts";
const probes = "test/attacks/probes.test.ts";
const imageRule = "docs/design/service.md, Images by URL";

export const edges: Mutant[] = [
  {
    name: "each migration alters the table that nodes look at",
    file: "db/migrate.ts",
    find: 'if (!marked) await tx.exec("alter table schema_migration add column additive boolean',
    replace:
      'if (marked !== null) await tx.exec("alter table schema_migration add column if not exists additive boolean',
    caughtBy: ["test/postgres/migrate.test.ts > nodes learn of the schema"],
    rule: "docs/design/runtime.md, Drizzle and Postgres",
  },
  {
    name: "two hosts are one",
    file: "src/http/ambiguous.ts",
    find: 'if (headers.get("host")?.includes(",")) throw ambiguous("has more than one Host header");',
    replace: "",
    caughtBy: [`${targets} > two hosts`],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a coding beside chunked is passed over",
    file: "src/http/ambiguous.ts",
    find: 'coding.toLowerCase() !== "chunked"',
    replace: '!coding.toLowerCase().includes("chunked")',
    caughtBy: [`${targets} > a coding and a comma`],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "an address that IPv6 carries is taken for another",
    file: "src/inference/image-url.ts",
    find: "return carried ?",
    replace: "return carried && !carried ?",
    caughtBy: [images],
    rule: imageRule,
  },
  {
    name: "a user name without a password is none",
    file: "src/inference/image-url.ts",
    find: "if (url.username || url.password || /^[^:]+:\\/\\/[^/?#]*@/.test(text))",
    replace: "if (url.password)",
    caughtBy: [images],
    rule: imageRule,
  },
  {
    name: "what lies below a denied host is allowed",
    file: "src/inference/image-url.ts",
    find: "host === denied || host.endsWith(`.${denied}`)",
    replace: "host === denied",
    caughtBy: [images],
    rule: imageRule,
  },
  {
    name: "a host that only ends like a denied one is denied",
    file: "src/inference/image-url.ts",
    find: "host.endsWith(`.${denied}`)",
    replace: "host.endsWith(denied)",
    caughtBy: [images],
    rule: imageRule,
  },
  {
    name: "the dot at a host's end hides it",
    file: "src/inference/image-url.ts",
    find: 'url.hostname.replace(/\\.$/, "")',
    replace: "url.hostname",
    caughtBy: [images],
    rule: imageRule,
  },
  {
    name: "a database that only reads is ready",
    file: "src/postgres/admits.ts",
    find: "db.exec(trial)",
    replace: 'db.exec("select 1")',
    caughtBy: [`${probes} > a database that only reads`],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "what a probe writes stays",
    file: "src/postgres/admits.ts",
    find: "  raise exception 'taken back' using errcode = 'SL000';\n",
    replace: "",
    caughtBy: [`${probes} > what a check writes is taken back`],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a statement gets into another's transaction",
    file: "src/postgres/turns.ts",
    find: "gate = mine.catch(() => {});",
    replace: "mine.catch(() => {});",
    caughtBy: ["test/postgres/embedded.test.ts > a transaction has the session for itself"],
    rule: "docs/design/runtime.md, PGlite",
  },
];

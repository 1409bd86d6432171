// Checks which modules may depend on which (docs/design/architecture.md, Modules). Each function returns the violations
// of one rule, and says what to do instead. If a rule prevents a better design, the rule is changed here, with the
// reason in docs/decisions.md; no rule has exceptions.

import { codeOf, headOf, importsOf, packageOf, resolved, type Tree } from "./source.ts";

/**
 * The modules of the core, in the order in which a request passes through them. Except for `foundations`, each may
 * import those before it.
 */
const core = [
  "schema",
  "time",
  "inference",
  "sse",
  "protocol",
  "body",
  "store",
  "auth",
  "admission",
  "upstream",
  "routing",
  "usage",
  "http",
  "operations",
].map((name) => `core/${name}`);
/** The first modules of the core, each of which imports no other module. */
const foundations = core.slice(0, 4);

const features = [
  "claude-code",
  "codex",
  "continuation",
  "identity",
  "notices",
  "openapi",
  "operations",
  "probing",
  "receipts",
  "responses",
  "secrets",
  "sharing",
  "simulator",
  "telemetry",
  "tokenizers",
  "unserved",
  "upkeep",
  "workers",
].map((name) => `features/${name}`);

/** The modules of administration. Each may import those before it. */
const admin = ["store", "management", "console", "http", "people", "cli"].map((name) => `admin/${name}`);

/**
 * Matches the folders with the interfaces that features and administration need from a store, and that the stores
 * implement.
 */
const interfaces = /^src\/(features\/\w+|admin)\/store\//;

const stores = ["counting", "postgres", "redis", "memory"].map((name) => `stores/${name}`);

const before = (list: readonly string[], name: string) => list.slice(0, list.indexOf(name));

/** For each module, the other modules that it may import. Only `node` may import all. */
const sights: Record<string, readonly string[]> = {
  ...Object.fromEntries(core.map((name) => [name, foundations.includes(name) ? [] : before(core, name)])),
  ...Object.fromEntries(features.map((name) => [name, core])),
  ...Object.fromEntries(admin.map((name) => [name, [...core, ...features, ...before(admin, name)]])),
  "admin/cli": [...core, ...features, ...before(admin, "admin/cli"), "config"],
  // The simulator shares no code with the decoders, so that a defect of a decoder cannot be in both.
  "features/simulator": ["core/inference", "core/sse", "core/protocol"],
  ...Object.fromEntries(stores.map((name) => [name, ["core/time", "core/inference", "core/store"]])),
  ...Object.fromEntries(
    ["stores/redis", "stores/memory"].map((name) => [
      name,
      ["core/time", "core/inference", "core/store", "stores/counting"],
    ]),
  ),
  "stores/postgres": ["core/schema", "core/time", "core/inference", "core/store", "db"],
  config: [...before(core, "core/http"), "features/probing", "admin/store", "admin/management"],
  db: ["core/inference", "core/store", "stores/postgres"],
  main: ["admin/cli", "node"],
};

/**
 * Packages that only the modules matched by `rooms` may import. `instead` says what all other modules use in their
 * place.
 */
const technologies: { packages: RegExp; rooms: RegExp; instead: string }[] = [
  {
    packages: /^(drizzle-orm|drizzle-kit|postgres|@electric-sql\/pglite)$/,
    rooms: /^(src\/stores\/postgres|db)\//,
    instead: "the interfaces of src/core/store (Directory, Ledger), handed over by src/node",
  },
  {
    packages: /^ioredis$/,
    rooms: /^src\/stores\/redis\//,
    instead: "the interfaces of src/core/store (Rates), handed over by src/node",
  },
  {
    packages: /^(gpt-tokenizer|llama3-tokenizer-js)$/,
    rooms: /^src\/features\/tokenizers\//,
    instead: "the counter of src/features/tokenizers, handed over by src/node",
  },
  {
    packages: /^(prom-client|@opentelemetry\/.*)$/,
    rooms: /^src\/features\/telemetry\//,
    instead: "the metrics and traces of src/features/telemetry, handed over by src/node",
  },
  {
    packages: /^(jose|openid-client|oauth4webapi)$/,
    rooms: /^(src\/features\/identity|test)\//,
    instead: "src/features/identity, which alone verifies what issuers say",
  },
  {
    packages: /^nodemailer$/,
    rooms: /^src\/features\/notices\/mail\//,
    instead: "src/features/notices/mail, which alone sends mail",
  },
  {
    packages: /^(elysia|@elysiajs\/.*)$/,
    rooms: /^src\/(node\/app\.ts|features\/(simulator|openapi)\/)/,
    instead: "src/node/app.ts, which alone mounts operations",
  },
  {
    packages: /^(typebox|@sinclair\/typebox)$/,
    rooms: /^src\/(core\/(schema\/|protocol\/(.*\/)?contract\.ts$|operations\/)|features\/|config\/|admin\/|node\/app)/,
    instead: "the types and checks that src/core/protocol/*/contract.ts exports",
  },
];

const pureRooms = ["core/schema", "core/inference", "core/sse", "core/protocol"];

/** Impure functions that a pure file may not use, and the alternative for each. */
const impure: { touch: RegExp; name: string; instead: string }[] = [
  { touch: /(?<![.\w])Date\.now\b/, name: "Date.now", instead: "take the instant as an argument" },
  { touch: /(?<![.\w])new Date\(\)/, name: "new Date()", instead: "take the instant as an argument" },
  { touch: /(?<![.\w])performance\.now\b/, name: "performance.now", instead: "take the instant as an argument" },
  { touch: /(?<![.\w])Math\.random\b/, name: "Math.random", instead: "take the drawn number as an argument" },
  { touch: /(?<![.\w])crypto\b(?!\s*:)/, name: "crypto", instead: "take the id or the random bytes as an argument" },
  {
    touch: /(?<![.\w])process\b(?!\s*:)/,
    name: "process",
    instead: "take the setting as an argument, from src/config",
  },
  { touch: /(?<![.\w])fetch\b(?!\s*:)/, name: "fetch", instead: "leave talking to src/core/upstream" },
  { touch: /(?<![.\w])set(Timeout|Interval)\b(?!\s*:)/, name: "a timer", instead: "take the instant as an argument" },
  // Hashing and comparing are pure, although Bun offers them.
  {
    touch: /(?<![.\w])Bun\.(?!CryptoHasher\b|SHA\d+\b|hash\b|deepEquals\b)/,
    name: "Bun's input and output",
    instead: "leave it to the rooms that are not pure",
  },
];

/** The module of a file, such as `core/auth`. `src/main.ts` is a module of its own. */
export function roomOf(path: string): string {
  const [top = "", group = "", module = "", ...rest] = path.split("/");
  if (top !== "src") return top;
  if (module === "") return "main";
  return groups.includes(group) && rest.length > 0 ? `${group}/${module}` : group;
}

const groups = ["core", "features", "admin", "stores"];

/** Imports of modules that come later in the order, or that the importing module may not depend on. */
export function wrongDirections(tree: Tree): string[] {
  const wrong = edges(tree).flatMap(({ path, line, file }) => {
    const [from, to] = [roomOf(path), roomOf(file)];
    if (from === to || from === "node" || !file.endsWith(".ts") || path === "src/assets.d.ts") return [];
    if (from.startsWith("stores/") && interfaces.test(file)) return [];
    const sight = sights[from];
    if (sight === undefined) return [`${path}: ${from} is no module. Modules: ${Object.keys(sights).join(", ")}`];
    if (sight.includes(to)) return [];
    return [
      `${path}:${line} imports ${file}. ${from} sees ${sight.join(", ") || "nothing"}. Instead: ${insteadOf(from, to)}`,
    ];
  });
  return [...new Set(wrong)];
}

function insteadOf(from: string, to: string): string {
  if (to.startsWith("stores/")) return "the interfaces of src/core/store, handed over by src/node";
  if (to === "config") return "take the value as an argument; src/node hands it over";
  if (to === "features/simulator") return "HTTP, like any other engine";
  if (to === "main" || to === "node")
    return `nobody but main imports ${to}; move the thing to the room that defines it`;
  return `let ${to} call ${from}, or take what is needed as an argument whose type ${from} defines`;
}

/** Import cycles between files, including type imports. Each cycle is listed once, by its files. */
export function cycles(tree: Tree): string[] {
  const next = new Map<string, string[]>();
  for (const { path, file } of edges(tree)) {
    if (tree.has(file)) next.set(path, [...(next.get(path) ?? []), file]);
  }
  const found = new Set<string>();
  const done = new Set<string>();
  const visit = (file: string, way: string[]): void => {
    const at = way.indexOf(file);
    if (at >= 0) {
      const circle = way.slice(at);
      const first = circle.indexOf([...circle].sort()[0]!);
      const turned = [...circle.slice(first), ...circle.slice(0, first)];
      found.add(`${[...turned, turned[0]].join(" -> ")}. Instead: put what both need into a file that imports neither`);
      return;
    }
    if (done.has(file)) return;
    for (const target of next.get(file) ?? []) visit(target, [...way, file]);
    done.add(file);
  };
  for (const file of next.keys()) visit(file, []);
  return [...found];
}

/**
 * Files of the product that a file of `proof` imports, directly or indirectly. The checker in `proof` must not share a
 * defect with the product.
 */
export function borrowings(tree: Tree): string[] {
  const next = Map.groupBy(edges(tree), ({ path }) => path);
  const wrong: string[] = [];
  for (const start of [...tree.keys()].filter((path) => roomOf(path) === "proof")) {
    const way = [start];
    for (const file of way) {
      for (const { file: target } of next.get(file) ?? []) {
        if (/^(src|db)\//.test(target))
          wrong.push(
            `${start} reaches ${target} by ${file}. Instead: ask the product from outside, over HTTP or its CLI`,
          );
        else if (!way.includes(target)) way.push(target);
      }
    }
  }
  return wrong;
}

export function strayTechnologies(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) =>
    importsOf(source).flatMap(({ line, target }) =>
      technologies
        .filter(({ packages, rooms }) => packages.test(packageOf(target)) && !rooms.test(path))
        .map(({ instead }) => `${path}:${line} imports ${target}. Instead: ${instead}`),
    ),
  );
}

/**
 * Imports of the product's code by the console's pages. They may import types only: importing verbs would add the
 * verbs' stores to the bundle of the pages.
 */
export function weightOfPages(tree: Tree): string[] {
  return [...tree].flatMap(([path, source]) => {
    if (path === "console/core/verb-table.ts") return [];
    const runs = new Bun.Transpiler({ loader: "tsx" }).scanImports(source);
    return runs
      .filter(({ path: target }) => /(^|\/)(src|db)\//.test(resolved(path, target) ?? ""))
      .map(({ path: target }) => `${path} imports ${target}. Instead: import type, or ask a verb`);
  });
}

/**
 * Impure code in the modules that must be pure (`pureRooms`), and in every file whose head comment says `Pure.`,
 * `Pure:` or `is pure`.
 */
export function impurities(tree: Tree): string[] {
  const pure = [...tree].filter(
    ([path, source]) => pureRooms.includes(roomOf(path)) || /\bPure[.:]|\bis pure\b/.test(headOf(source)),
  );
  return pure.flatMap(([path, source]) => {
    const code = codeOf(source);
    const touched = impure.filter(({ touch }) => touch.test(code));
    const modules = importsOf(source).filter(({ target }) => /^(node:|bun(:|$))/.test(target));
    return [
      ...touched.map(({ name, instead }) => `${path} is pure and touches ${name}. Instead: ${instead}`),
      ...modules.map(
        ({ line, target }) => `${path}:${line} is pure and imports ${target}. Instead: take its result as an argument`,
      ),
    ];
  });
}

/** Fault codes that no test names, or that the documentation does not mention. */
export function untoldFaults(codes: readonly string[], tests: Tree, document: string): string[] {
  const told = [...tests.values()].join("\n");
  return codes.flatMap((code) => [
    ...(new RegExp(`["'\`]${code}["'\`]`).test(told)
      ? []
      : [
          `${code}: no test names it. Instead: the test of the room that raises it, or test/core/inference/fault.test.ts until one does`,
        ]),
    ...(document.includes(`\`${code}\``)
      ? []
      : [`${code}: docs/errors.md does not tell it. Instead: a line in its table`]),
  ]);
}

/**
 * Matches the code that raises a fault, such as `new Fault("code", …`, and the verbs' `fail(message, "code")`. A fault
 * is also raised if its code is in a violation or a refusal.
 */
const raises = /(?:\b(?:new Fault|super|unauthorized)\(|\bcode:|\bnew ManagementError\(\w+,)\s*"(\w+)"|"(\w+)",?\s*\)/g;

export function unraisedFaults(codes: readonly string[], tree: Tree): string[] {
  const raised = new Set<string>();
  for (const source of tree.values()) for (const [, code, last] of source.matchAll(raises)) raised.add((code ?? last)!);
  return codes
    .filter((code) => !raised.has(code))
    .map(
      (code) =>
        `${code}: nothing in src raises it. Instead: new Fault("${code}", …), or out of the catalogue until then`,
    );
}

/**
 * Released migrations whose checksum differs from that in `db/migrations/checksums`. A released migration may have been
 * applied somewhere, so it must never change. Later migrations are not in that file, and may be edited until their
 * release.
 */
export function editedMigrations(migrations: readonly { name: string; sum: string }[], checksums: string): string[] {
  const next = String(migrations.length + 1).padStart(4, "0");
  return linesOf(checksums).flatMap((line, at) => {
    const [sum, name] = line.split("  ");
    const ours = migrations[at];
    if (ours?.name !== name)
      return [`db/migrations/${name} is not in its place. Instead: put it back; migrations are only added`];
    return ours?.sum === sum
      ? []
      : [`db/migrations/${name} was edited. Instead: undo that, and append db/migrations/${next}_….sql instead`];
  });
}

/** The text of `db/migrations/checksums` when all of these migrations are released. */
export function releasedChecksums(migrations: readonly { name: string; sum: string }[]): string {
  return migrations.map(({ name, sum }) => `${sum}  ${name}\n`).join("");
}

/**
 * The line of `db/migrations/released` for a version: its newest migration, and a hash of the checksums up to that
 * migration.
 */
export function releasedLine(version: string, checksums: string, last?: string): string {
  const lines = linesOf(checksums);
  const count = last === undefined ? lines.length : lines.findIndex((line) => line.endsWith(`  ${last}`)) + 1;
  const name = lines[count - 1]?.slice(66) ?? "none";
  const sum = new Bun.CryptoHasher("sha256").update(`${lines.slice(0, count).join("\n")}\n`).digest("hex");
  return `${version}  ${name}  ${sum}`;
}

/** Releases whose migrations have changed since, so that a database of that version could not be upgraded. */
export function changedReleases(checksums: string, released: string): string[] {
  return linesOf(released)
    .filter((line) => {
      const [version = "", last = ""] = line.split("  ");
      return releasedLine(version, checksums, last) !== line;
    })
    .map((line) => {
      const [version, last] = line.split("  ");
      return `The migrations up to ${last} were released as ${version}. Instead: put them back as they were in db/migrations/checksums`;
    });
}

const linesOf = (text: string) => text.split("\n").filter((line) => line !== "");

function edges(tree: Tree): { path: string; line: number; file: string }[] {
  return [...tree].flatMap(([path, source]) =>
    importsOf(source).flatMap(({ line, target }) => {
      const file = resolved(path, target);
      return file === null ? [] : [{ path, line, file }];
    }),
  );
}

const dialectFiles = /^src\/core\/protocol\/dialects(\.ts$|\/)/;

/**
 * Code outside the dialects' files that compares with an engine's name, or branches on a dialect. Only expressions are
 * searched: names in comments, strings and tables are allowed.
 */
export function engineBranches(tree: Tree, names: readonly string[]): string[] {
  const name = `["'\`](?:${names.map((one) => one.replaceAll(".", "\\.")).join("|")})["'\`]`;
  const engine = new RegExp(
    [
      `[!=]==?\\s*${name}`,
      `${name}\\s*[!=]==?`,
      `\\bcase\\s+${name}`,
      `\\.(?:includes|startsWith|endsWith|indexOf|lastIndexOf|search|match|test|has)\\(\\s*${name}`,
      `\\bdialects(?:\\.(?!(?:generic|ts)\\b)\\w|\\[["'])`,
      "\\bdialect(?:\\.mark)?\\s*[!=]==?(?!=|\\s*(?:undefined|null)\\b)",
      "[!=]==?\\s*[\\w.]*\\b(?:dialect(?:\\.mark)?(?![.\\w])|dialects\\.\\w+)",
      "\\bswitch\\s*\\([^)]*\\bdialect(?:\\.mark)?\\s*\\)",
    ].join("|"),
  );
  const pattern = new RegExp(
    `/[^/\\n]*\\b(?:${names.map((one) => one.replaceAll(".", "\\.")).join("|")})\\b[^/\\n]*/\\w*\\.test\\(`,
    "i",
  );
  return [...tree].flatMap(([path, source]) => {
    if (dialectFiles.test(path)) return [];
    const code = new Bun.Transpiler({ loader: "ts", deadCodeElimination: false }).transformSync(source);
    const found = engine.exec(code) ?? pattern.exec(code);
    return found ? [`${path} branches on an engine: ${found[0]}. Instead: a row of src/core/protocol/dialect.ts`] : [];
  });
}

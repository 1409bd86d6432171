/** Runs the CLI on a directory in memory: `typed("org create acme")` returns what the terminal would show. */
import { expect } from "bun:test";
import { run } from "../../../src/admin/cli/run.ts";
import type { Services } from "../../../src/admin/cli/services.ts";
import type { Configuration } from "../../../src/config/configuration.ts";
import { loadConfiguration } from "../../../src/config/load.ts";
import type { CatalogModel } from "../../../src/core/routing/catalog.ts";
import type { Plan } from "../../../src/core/store/plan.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { type MemoryDirectory, memoryDirectory } from "../../core/auth/memory-directory.ts";
import { emptyLedger } from "../management/empty-ledger.ts";
import { managementStores } from "../management/stores.ts";

export interface Shell {
  directory: MemoryDirectory;
  services: Services;
  /** Runs a command. `words` is a text that is split at spaces, or a list of words if one contains a space. */
  typed(words: string | string[]): Promise<{ code: number; out: string; err: string }>;
  /** Does the same as `typed`, but returns the JSON that the command printed. */
  json(words: string | string[]): Promise<Record<string, unknown>>;
}

export function shell(overrides: Partial<Services> = {}): Shell {
  const directory = memoryDirectory();
  const written = { out: "", err: "" };
  const services: Services = {
    version: "1.2.3",
    schema: async () => "0009_things",
    program: ["sluice"],
    terminal: {
      out: (text) => {
        written.out += text;
      },
      err: (text) => {
        written.err += text;
      },
      width: null,
      color: false,
      interactive: false,
    },
    environment: {},
    user: "ann",
    now_ms: () => directory.clock.now_ms,
    newUuid: () => Bun.randomUUIDv7(),
    random: (bytes) => crypto.getRandomValues(new Uint8Array(bytes)),
    prompts: () => Promise.reject(new Error("nobody may be asked")),
    storage: () => ({ databaseUrl: "postgres://db.example/sluice", redisUrl: null, dataDir: "/nowhere" }),
    configuration: async () => configuration,
    openStore: async () => ({
      administration: directory,
      ...emptyLedger({ now: async () => new Date(directory.clock.now_ms) }),
      close: async () => {},
    }),
    migrate: async () => ({ applied: [], newer: [] }),
    compareSchema: async () => ({ is: "current", problem: null, newer: [] }),
    inspectDatabase: async () => ({
      says: "reachable",
      schema: { is: "current", problem: null },
      administrators: null,
      processes: 1,
    }),
    inspectRedis: async () => "reachable",
    descriptorLimit: () => 65_536,
    room: () => ({ cores: 4, memory_bytes: 4 * 1024 ** 3 }),
    addresses: () => ["127.0.0.1", "10.0.0.7"],
    certificates: async () => [],
    draftConfiguration: () => Promise.reject(new Error("no engine")),
    openapi: async () => '{"openapi":"3.1.0"}\n',
    serve: async () => 0,
    simulate: () => Promise.reject(new Error("no simulator")),
    untilStopped: async () => {},
    ...overrides,
  };
  const typed = async (words: string | string[]) => {
    Object.assign(written, { out: "", err: "" });
    const code = await run(typeof words === "string" ? words.split(" ") : words, services);
    return { code, ...written };
  };
  return {
    directory,
    services,
    typed,
    async json(words) {
      const { code, out, err } = await typed(words);
      if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
      return JSON.parse(out);
    },
  };
}

/** Returns a shell on a database, which it does not close. */
export function shellOn(db: Database, overrides: Partial<Services> = {}): Shell {
  const openStore = async () => ({ ...managementStores(db), close: async () => {} });
  return shell({ now_ms: Date.now, openStore, ...overrides });
}

/** Runs `sluice doctor`, and returns its findings. */
export async function doctorOf({ typed }: Pick<Shell, "typed">) {
  const { code, out, err } = await typed("doctor --json");
  const findings: { check: string; status: string; says: string }[] = JSON.parse(out);
  return { code, out, err, findings, of: (check: string) => findings.find((finding) => finding.check === check)! };
}

function plan(name: string, nanos: number | null): Plan {
  const rates = { requestsPerMinute: null, tokensPerMinute: null, concurrentRequests: null };
  return { name, session: nanos, week: nanos, month: nanos, ...rates };
}

function model(id: string): CatalogModel {
  return {
    id,
    ownedBy: id.split("/")[0]!,
    created: 1_790_000_000,
    contextTokens: 131_072,
    outputTokens_max: 16_384,
    capabilities: new Set(),
    prices: { input: 100_000, cachedInput: 10_000, cacheWrite: 125_000, output: 400_000 },
    extraParams: [],
    routes: [],
  };
}

const defaults = loadConfiguration({ env: {}, readFile: () => null });
if (defaults instanceof Error) throw defaults;

const configuration: Configuration = {
  ...defaults,
  catalog: {
    models: new Map(["acme/writer-1", "acme/painter-1"].map((id) => [id, model(id)])),
    plans: new Map(
      [plan("starter", 1_000_000), plan("pro", 50_000_000), plan("unlimited", null)].map((p) => [p.name, p]),
    ),
  },
  upstreams: [],
  storage: { databaseUrl: null, redisUrl: null, dataDir: "/nowhere" },
};

/**
 * Expects that each of these commands exits with code 2, prints nothing on stdout, and reports an error of its syntax
 * on stderr.
 */
export async function expectMisuse({ typed }: Pick<Shell, "typed">, commands: readonly (string | string[])[]) {
  for (const words of commands) {
    const { code, out, err } = await typed(words);
    expect([words, code, out]).toEqual([words, 2, ""]);
    expect(err).not.toBe("");
  }
}

/** Expects that each of these commands exits with code 1, and prints one line on stderr that contains this text. */
export async function expectRefused({ typed }: Pick<Shell, "typed">, rows: readonly (readonly [string, string])[]) {
  for (const [words, says] of rows) {
    const { code, out, err } = await typed(words);
    expect([words, code, out]).toEqual([words, 1, ""]);
    expect(err).toMatch(/^sluice: [^\n]+\n$/);
    expect(err).toContain(says);
  }
}

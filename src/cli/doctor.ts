/** `sluice doctor`: looks at everything a server would need, and says what to do about what is missing. Changes nothing. */
import { accessSync, constants, existsSync, readdirSync, statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Command } from "commander";
import { Refusal } from "../auth/refusal.ts";
import type { Configuration, StorageSettings } from "../config/configuration.ts";
import { simulatorName } from "../config/simulator.ts";
import type { Upstream } from "../upstream/target.ts";
import type { Building } from "./building.ts";
import { healthOf, localUrl } from "./healthcheck.ts";
import { jsonOption, printJson } from "./option.ts";
import { runningServer } from "./reach.ts";
import type { Services } from "./services.ts";
import { oneLine, painted, type Terminal } from "./terminal.ts";

interface Finding {
  check: string;
  status: "ok" | "warning" | "problem";
  says: string;
}

const upstream_ms = 5000;
/** What an embedded database may grow by before anybody looks again. */
const free_bytes_min = 512 * 1024 * 1024;

export function addDoctorCommand(program: Command, { services }: Building): void {
  program
    .command("doctor")
    .description("look at all that a server needs, and say what is missing")
    .addOption(jsonOption())
    .action(async (options: { json?: boolean }) => {
      const findings = await examined(services);
      if (options.json) printJson(services.terminal, findings);
      else services.terminal.out(findings.map((finding) => line(services.terminal, finding)).join(""));
      const problems = findings.filter((finding) => finding.status === "problem");
      if (problems.length > 0) {
        throw new Refusal(
          `${problems.length} of ${findings.length} checks failed: ${problems.map((one) => one.check).join(", ")}`,
        );
      }
    });
}

async function examined(services: Services): Promise<Finding[]> {
  const findings: Finding[] = [];
  const look = async (check: string, work: () => Promise<string>): Promise<void> => {
    try {
      findings.push({ check, status: "ok", says: await work() });
    } catch (thrown) {
      const says = oneLine(thrown instanceof Error ? thrown.message : String(thrown));
      findings.push({ check, status: thrown instanceof Warning ? "warning" : "problem", says });
    }
  };
  let configuration: Configuration | undefined;
  let storage: StorageSettings | undefined;
  await look("configuration", async () => {
    configuration = await services.configuration();
    const { catalog, upstreams } = configuration;
    return `${count(catalog.models.size, "model")}, ${count(catalog.plans.size, "plan")}, ${count(upstreams.length, "engine")}`;
  });
  for (const notice of configuration?.notices ?? []) {
    findings.push({ check: "configuration", status: "warning", says: oneLine(notice) });
  }
  await look("storage", async () => {
    storage = services.storage();
    return storage.databaseUrl ? "a database of its own (DATABASE_URL)" : dataFolder(storage.dataDir);
  });
  const { databaseUrl, redisUrl = null } = storage ?? {};
  if (storage) {
    const settings = storage;
    await look("database", () => database(services, settings));
    await look("redis", async () => redis(services, databaseUrl ?? null, redisUrl));
  }
  await Promise.all((configuration?.upstreams ?? []).map((one) => look(`engine ${one.name}`, () => engine(one))));
  await look("server", () => server(services));
  return findings;
}

/** What may be as it is, and should be known. */
class Warning extends Error {}

function dataFolder(dataDir: string): string {
  const folder = resolve(dataDir);
  let there = folder;
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there);
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
  } catch {
    throw new Error(
      `${there} cannot be written by this user; set SLUICE_DATA_DIR to a folder that can, or DATABASE_URL`,
    );
  }
  const { bavail, bsize } = statfsSync(there);
  if (bavail * bsize < free_bytes_min) throw new Warning(`less than 512 MiB are free for ${folder}`);
  return there === folder ? `the data folder ${folder}` : `the data folder ${folder}, to be made at the first start`;
}

async function database(services: Services, storage: StorageSettings): Promise<string> {
  if (await runningServer(services, storage)) return "embedded, held by the running server, which answers";
  if (!storage.databaseUrl && !hasData(storage.dataDir)) return "embedded, to be made at the first start";
  return services.inspectDatabase(storage);
}

/** Whether a server has ever run there: to open a database that is not there would make it. */
function hasData(dataDir: string): boolean {
  return existsSync(dataDir) && readdirSync(dataDir).length > 0;
}

async function redis(services: Services, databaseUrl: string | null, redisUrl: string | null): Promise<string> {
  if (redisUrl) return services.inspectRedis(redisUrl);
  return databaseUrl
    ? "not set: right for one node; several nodes are slower without it (REDIS_URL)"
    : "not set, and not needed with the embedded database";
}

/** Any answer shows that somebody is there; only what no request could survive is a problem. */
async function engine(upstream: Upstream): Promise<string> {
  if (upstream.name === simulatorName) return "built in, runs with the server";
  const headers: Record<string, string> = upstream.apiKey
    ? { authorization: `Bearer ${upstream.apiKey}`, "x-api-key": upstream.apiKey }
    : {};
  let status: number;
  try {
    const signal = AbortSignal.timeout(upstream_ms);
    const response = await fetch(`${upstream.url}/models`, { headers, proxy: false, redirect: "manual", signal });
    await response.body?.cancel();
    status = response.status;
  } catch (cause) {
    const why = cause instanceof Error && cause.name === "TimeoutError" ? "does not answer" : "cannot be reached";
    throw new Error(`${upstream.url} ${why}; start the engine, or mend its url in sluice.yaml (SLUICE_UPSTREAM_URL)`);
  }
  if (status === 401 || status === 403) {
    throw new Error(
      `${upstream.url} refuses the key (${status}); mend its api_key in sluice.yaml (SLUICE_UPSTREAM_KEY)`,
    );
  }
  if (status >= 500) throw new Warning(`${upstream.url} answers ${status}; look at the engine's log`);
  if (status >= 300)
    throw new Warning(`${upstream.url} answers, but lists no models (${status}); does the url end with /v1?`);
  return `${upstream.url} answers`;
}

async function server(services: Services): Promise<string> {
  const url = localUrl(services.environment);
  const health = await healthOf(url);
  if (health.ready) return `ready at ${url.origin}`;
  if (health.answered) throw new Warning(`${url.origin}: ${health.says}`);
  return `not running at ${url.origin}; start it: sluice serve`;
}

function count(number: number, thing: string): string {
  return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

const marks = {
  ok: { color: "green", text: "ok      " },
  warning: { color: "yellow", text: "warning " },
  problem: { color: "red", text: "problem " },
} as const;

function line(terminal: Terminal, { check, status, says }: Finding): string {
  const { color, text } = marks[status];
  return `${painted(terminal, color, text)} ${check.padEnd(16)} ${says}\n`;
}

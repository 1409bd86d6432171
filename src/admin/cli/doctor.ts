/** `sluice doctor`: checks everything that a server needs, and says how to fix what is wrong. Changes nothing. */
import { accessSync, constants, existsSync, statfsSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import type { Configuration, ServerSettings, StorageSettings } from "../../config/configuration.ts";
import type { WorkersWanted } from "../../config/settings/sections.ts";
import { type MachineRoom, tooSmall, workersIn } from "../../config/workers.ts";
import { issuerClients } from "../../features/identity/issuer-clients.ts";
import type { Management } from "../management/verbs.ts";
import { ratesInShares } from "../store/rates-in-shares.ts";
import { judged } from "./certificates.ts";
import { runningServer, withManagement } from "./connect.ts";
import { engineSays } from "./engine-check.ts";
import { type Health, healthOf, localUrl } from "./healthcheck.ts";
import { issuerSays } from "./issuer-check.ts";
import { mailServerSays } from "./mail-check.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import { consolePortSays, operatorPortSays } from "./port-check.ts";
import { rulesSay } from "./rules-check.ts";
import type { CommandContext, Inspection, Services } from "./services.ts";
import { socketMigrations } from "./socket.ts";
import { oneLine, painted, type Terminal } from "./terminal.ts";
import { Warning } from "./warning.ts";
import { zonesSay } from "./zones-check.ts";

interface Finding {
  check: string;
  status: "ok" | "warning" | "problem";
  says: string;
}

/** The least free disk space for an embedded database. */
const free_bytes_min = 512 * 1024 * 1024;
/** Enough file descriptors for a few thousand concurrent clients and the connections to engines for them. */
const descriptors_min = 8192;

export function addDoctorCommand(program: Command, { services }: CommandContext): void {
  program
    .command("doctor")
    .description("check everything that a server needs, and report problems")
    .addOption(jsonOption())
    .action(async (options: JsonFlag) => {
      const findings = await examine(services);
      if (options.json) printJson(services.terminal, findings);
      else services.terminal.out(findings.map((finding) => line(services.terminal, finding)).join(""));
      const problems = findings.filter((finding) => finding.status === "problem");
      if (problems.length > 0) {
        throw new Error(
          `${problems.length} of ${findings.length} checks failed: ${problems.map((one) => one.check).join(", ")}`,
        );
      }
    });
}

async function examine(services: Services): Promise<Finding[]> {
  const findings: Finding[] = [];
  const inspect = async (check: string, work: () => Promise<string>): Promise<void> => {
    try {
      findings.push({ check, status: "ok", says: await work() });
    } catch (thrown) {
      const says = oneLine(thrown instanceof Error ? thrown.message : String(thrown));
      findings.push({ check, status: thrown instanceof Warning ? "warning" : "problem", says });
    }
  };
  let configuration: Configuration | undefined;
  let storage: StorageSettings | undefined;
  let administrators: string | null = null;
  await inspect("configuration", async () => {
    configuration = await services.configuration();
    const { catalog, upstreams } = configuration;
    return `${count(catalog.models.size, "model")}, ${count(catalog.plans.size, "plan")}, ${count(upstreams.length, "engine")}`;
  });
  for (const notice of configuration?.notices ?? []) {
    findings.push({ check: "configuration", status: "warning", says: oneLine(notice) });
  }
  await inspect("storage", async () => {
    storage = services.storage();
    return storage.databaseUrl ? "an external database (DATABASE_URL)" : dataFolder(storage.dataDir);
  });
  const { databaseUrl, redisUrl = null } = storage ?? {};
  if (storage) {
    const settings = storage;
    let found: Awaited<ReturnType<typeof database>> | undefined;
    await inspect("database", async () => {
      found = await database(services, settings);
      return found.says;
    });
    const { schema } = found ?? {};
    administrators = found?.administrators ?? null;
    const { rules = [] } = configuration?.identity ?? {};
    if (schema) await inspect("schema", async () => schemaSays(schema, configuration?.server.migrates ?? true));
    const hasDatabase = Boolean(settings.databaseUrl) || hasData(settings.dataDir);
    const isReadable = hasDatabase && found !== undefined && (schema === undefined || schema.is === "current");
    if (rules.length > 0 && isReadable)
      await inspect("rules", () => withManagement(services, (manage) => rulesSay(rules, manage)));
    if (isReadable)
      await withManagement(services, async (manage) => {
        const says = await zonesSay(manage);
        if (says !== null) await inspect("time zones", async () => says);
      }).catch((thrown) => inspect("time zones", () => Promise.reject(thrown)));
    const hasKey = configuration?.server.secretKeys !== undefined;
    if (isReadable && !hasKey)
      await withManagement(services, (manage) => noticesWithoutKey(manage)).then(
        (found) => findings.push(...found),
        () => {},
      );
    const shares = ratesInShares(found?.processes ?? 0);
    await inspect("redis", async () => redis(services, { databaseUrl: databaseUrl ?? null, redisUrl }, shares));
  }
  await Promise.all(
    (configuration?.upstreams ?? []).map((one) => inspect(`engine ${one.name}`, () => engineSays(one))),
  );
  const issuers = issuerClients({ now_ms: () => performance.now() });
  await Promise.all(
    (configuration?.identity?.issuers ?? []).map((one) =>
      inspect(`issuer ${one.issuer}`, () => issuerSays(one, issuers, services.now_ms)),
    ),
  );
  const { smtp } = configuration ?? {};
  if (smtp) await inspect("mail server", () => mailServerSays(smtp));
  for (const one of configuration ? await services.certificates(configuration) : []) {
    findings.push({ check: `certificate ${one.whose}`, ...judged(one, services.now_ms()) });
  }
  if (configuration) await inspect("metrics", async () => metrics(configuration!.server, services.addresses()));
  const { workers: wanted = 1 } = configuration?.server ?? {};
  if (wanted !== 1) await inspect("workers", async () => workers(wanted, services.room(configuration!)));
  await inspect("descriptors", async () => descriptors(services.descriptorLimit()));
  let isRunning = false;
  await inspect("server", async () => {
    const { says, runs, warnings } = await server(services);
    isRunning = runs;
    administrators ??= warnings.get("administrators") ?? null;
    return says;
  });
  if (administrators !== null) findings.push({ check: "administrators", status: "warning", says: administrators });
  if (configuration) {
    const { addresses } = services;
    await inspect("console", () => consolePortSays(configuration!, addresses(), isRunning));
  }
  return findings;
}

function dataFolder(dataDir: string): string {
  const folder = resolve(dataDir);
  let there = folder;
  while (!existsSync(there) && there !== dirname(there)) there = dirname(there);
  try {
    accessSync(there, constants.W_OK | constants.X_OK);
  } catch {
    throw new Error(
      `this user cannot write to ${there}; set SLUICE_DATA_DIR to a writable folder, or set DATABASE_URL`,
    );
  }
  const { bavail, bsize } = statfsSync(there);
  if (bavail * bsize < free_bytes_min) throw new Warning(`less than 512 MiB of disk space left for ${folder}`);
  return there === folder ? `the data folder ${folder}` : `the data folder ${folder}, which the first start creates`;
}

async function database(services: Services, storage: StorageSettings): Promise<Partial<Inspection> & { says: string }> {
  if (await runningServer(services, storage)) {
    const says = "embedded, held by the running server, which responds";
    const applied = await socketMigrations(storage);
    return applied
      ? { says, schema: await services.compareSchema(applied) }
      : { says: `${says}; its schema is unknown` };
  }
  if (!storage.databaseUrl && !hasData(storage.dataDir)) return { says: "embedded; the first start creates it" };
  return services.inspectDatabase(storage);
}

/**
 * The finding of `sluice doctor` about the schema. An older schema is a problem unless the next start migrates it: then
 * it is only a warning.
 */
function schemaSays({ is, problem }: Inspection["schema"], migrates: boolean): string {
  if (problem === null) return "as this version makes it";
  if (is === "older" && migrates) throw new Warning(problem);
  throw new Error(problem);
}

/**
 * Warns if there are destinations of notices but SLUICE_SECRET_KEY is not set:
 * - webhooks: their secrets are in plain text, so the database alone is enough to sign notices.
 * - channels: their URLs are encrypted, so nothing can be sent to them.
 */
async function noticesWithoutKey(manage: Management): Promise<Finding[]> {
  const { data } = await manage.pageNotices({ limit: 1000 });
  const warning = (says: string): Finding => ({ check: "webhooks", status: "warning", says });
  const has = (...forms: string[]) => data.some(({ form }) => forms.includes(form));
  return [
    ...(has("json")
      ? [warning("secrets of webhooks are in the database in plain text; set SLUICE_SECRET_KEY, which encrypts them")]
      : []),
    ...(has("slack", "teams")
      ? [
          warning(
            "the URLs of Slack and Teams are encrypted, so no notices are sent there; set SLUICE_SECRET_KEY again",
          ),
        ]
      : []),
  ];
}

/**
 * Whether the data folder has an embedded database. This is checked first because opening a missing database would
 * create it.
 */
function hasData(dataDir: string): boolean {
  return existsSync(join(dataDir, "postgres"));
}

/**
 * Checks Redis. `shares`: the warning that each process of the running fleet enforces only its share of the limits per
 * minute; null: there is one process, which enforces them exactly.
 */
async function redis(
  services: Services,
  { databaseUrl, redisUrl }: Pick<StorageSettings, "databaseUrl" | "redisUrl">,
  shares: string | null,
): Promise<string> {
  if (redisUrl) {
    return services.inspectRedis(redisUrl).catch((thrown: Error) => {
      throw shares === null ? thrown : new Error(`${thrown.message}: ${shares}`);
    });
  }
  if (!databaseUrl) return "not set; the embedded database does not need it";
  if (shares !== null) throw new Warning(`not set (REDIS_URL): ${shares}`);
  return "not set (REDIS_URL); one node alone counts limits a minute exactly, several nodes need it for that";
}

const loopback = /^(localhost|127(\.\d+){3}|::1)$/;

function metrics(settings: ServerSettings, addresses: readonly string[]): string {
  const { host, operator } = settings;
  if (operator) return operatorPortSays(settings, addresses);
  if (loopback.test(host)) return "/metrics on the port of the API, which only this machine reaches";
  throw new Warning("/metrics is public: everybody who reaches the API can read it; set SLUICE_OPERATOR_PORT");
}

function workers(wanted: WorkersWanted, room: MachineRoom): string {
  const number = workersIn(wanted, room);
  const small = tooSmall(number, room);
  if (small !== null) throw new Warning(small);
  const cores = `${count(room.cores, "core")} to run on`;
  return number === 1 ? `one process, ${cores}` : `${number} processes share the port, ${cores}`;
}

/** Checks the limit of file descriptors. Each client connection takes one, and each request another for its engine. */
function descriptors(limit: number | null): string {
  if (limit === null) return "this system does not say how many this process may open";
  if (limit >= descriptors_min) return `this process may open ${limit}`;
  throw new Warning(`this process may open ${limit}; raise the limit to ${descriptors_min} or more (ulimit -n)`);
}

/**
 * Whether the server on this machine runs, in words. `warnings`: the warnings of a running server, by the name of the
 * check.
 */
async function server(services: Services): Promise<{ says: string; runs: boolean } & Pick<Health, "warnings">> {
  const url = localUrl(services.environment);
  const { ready, answered, message, warnings } = await healthOf(new URL("?verbose", url), true);
  if (ready) return { says: `ready at ${url.origin}`, runs: true, warnings };
  if (answered) throw new Warning(`${url.origin}: ${message}`);
  return { says: `not running at ${url.origin}; to start it, run: sluice serve`, runs: false, warnings };
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

/**
 * Connects a command to the data, in this order: the management interface of `--server` or SLUICE_SERVER; the database
 * of DATABASE_URL; the server that holds the data folder, through its socket; the embedded database of that folder,
 * whose lock keeps other processes out meanwhile. Commands work the same over each of these connections.
 */
import { readFileSync } from "node:fs";
import { billingOf, calendarOf, type StorageSettings } from "../../config/configuration.ts";
import { isOperatorToken } from "../../core/auth/credential.ts";
import type { Plan } from "../../core/store/plan.ts";
import { management } from "../management/client.ts";
import { upstreamNames } from "../management/context.ts";
import type { Management } from "../management/verbs.ts";
import type { Plan as KnownPlan } from "../store/plan.ts";
import { codeOf } from "./calling.ts";
import type { RemoteServer } from "./remote.ts";
import { safeUrl } from "./safe-url.ts";
import type { OpenStore, Services } from "./services.ts";
import { type SocketCaller, socketManagement } from "./socket.ts";

/**
 * How long a command waits for a data folder that is in use and has no socket: a server opens its socket only at the
 * end of its start, and another command releases the folder in a moment.
 */
const busy_wait_ms = 5000;
const busy_poll_ms = 50;

export async function withManagement<T>(services: Services, work: (manage: Management) => Promise<T>): Promise<T> {
  const server = remoteServer(services);
  if (server) return work((await import("./remote.ts")).remoteManagement(server));
  const storage = services.storage();
  const deadline_ms = performance.now() + busy_wait_ms;
  for (;;) {
    const running = await runningServer(services, storage);
    if (running) return work(running);
    const store = await openStore(services, storage, performance.now() < deadline_ms);
    if (!store) {
      await Bun.sleep(busy_poll_ms);
      continue;
    }
    try {
      return await work(managementOf(services, store));
    } finally {
      await store.close();
    }
  }
}

/**
 * The node that `--server` names; null: commands use the data of this machine. Throws an Error if the token is missing
 * or the URL is unsafe.
 */
export function remoteServer({ environment }: Services): RemoteServer | null {
  const url = environment.SLUICE_SERVER?.trim();
  if (!url) return null;
  const parsed = safeUrl(url, "the operator token");
  return { url: parsed.href, token: operatorToken(environment) };
}

function operatorToken(environment: Services["environment"]): string {
  const file = environment.SLUICE_OPERATOR_TOKEN_FILE?.trim();
  const token = environment.SLUICE_OPERATOR_TOKEN?.trim();
  if (file && token) throw new Error("Set SLUICE_OPERATOR_TOKEN or SLUICE_OPERATOR_TOKEN_FILE, not both.");
  if (!file && !token) {
    throw new Error(
      "--server needs an operator token in SLUICE_OPERATOR_TOKEN or in a file, SLUICE_OPERATOR_TOKEN_FILE.",
    );
  }
  const found = file ? readToken(file) : token!;
  if (!isOperatorToken(found)) throw new Error("The operator token is not valid. A token begins with 'slo_'.");
  return found;
}

function readToken(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new Error(`SLUICE_OPERATOR_TOKEN_FILE: ${file} cannot be read`, { cause });
  }
}

/** The verbs of the server that holds the data folder; null if no server does, or if commands use DATABASE_URL. */
export async function runningServer(services: Services, storage: StorageSettings): Promise<Management | null> {
  if (storage.databaseUrl) return null;
  return socketManagement(socketCaller(services, storage));
}

/** The options with which this user calls the server that holds the data folder. */
export function socketCaller(services: Services, { dataDir }: StorageSettings): SocketCaller {
  return { dataDir, actor: actorOf(services) };
}

/** Opens the store. Null if another process uses the data folder and the caller may wait and try again. */
async function openStore(services: Services, storage: StorageSettings, mayWait: boolean): Promise<OpenStore | null> {
  try {
    return await services.openStore(storage);
  } catch (cause) {
    if (mayWait && codeOf(cause) === "in_use") return null;
    throw cause;
  }
}

/** This user's name as an actor of the audit log. */
function actorOf(services: Services): string {
  return `cli:${services.user.replace(/[^\w.@+-]/g, "_").slice(0, 64) || "unknown"}`;
}

/**
 * The plans in force: if nodes share the database and have published plans, the published ones; otherwise the plans of
 * this process's own file, which the next node puts into force, and the plans that were created with management verbs.
 */
function plansBeside(
  ofFile: ReadonlyMap<string, Plan>,
  stored: readonly KnownPlan[],
  { databaseUrl }: StorageSettings,
): ReadonlyMap<string, Plan> {
  const named = (plans: readonly Plan[]) => plans.map((plan) => [plan.name, plan] as const);
  if (databaseUrl && stored.some(({ source }) => source === "file")) return new Map(named(stored));
  return new Map([...ofFile, ...named(stored.filter(({ source }) => source === "management"))]);
}

function managementOf(services: Services, store: OpenStore): Management {
  return management({
    ...store,
    catalog: async () => {
      const configuration = await services.configuration();
      const { catalog, upstreams } = configuration;
      const billing = billingOf(configuration);
      const plans = plansBeside(catalog.plans, await store.plans.listPlans(), services.storage());
      return {
        plans,
        models: [...catalog.models.keys()],
        aliases: catalog.aliases,
        ...upstreamNames(upstreams),
        billing: { ...billing, currency: (await store.currency?.()) ?? billing.currency },
        calendar: calendarOf(configuration.metering),
      };
    },
    configuration: async () =>
      (await import("../../config/without-secrets.ts")).shownConfiguration(await services.configuration()),
    actor: actorOf(services),
    now_ms: services.now_ms,
    newUuid: services.newUuid,
    random: services.random,
  });
}

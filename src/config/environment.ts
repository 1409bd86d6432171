/** The environment's part of the configuration: where to listen, where data lives, which file, which engine. Empty equals unset. */
import { isIPv6 } from "node:net";
import { isNetwork } from "../auth/network.ts";
import { compact } from "../inference/compact.ts";
import { closestName } from "../schema/closest.ts";
import { checkedKey } from "./api-key.ts";
import type { IdentityFiles, TlsFiles } from "./certificate.ts";
import type { OperatorTls, ServerSettings, StorageSettings, WorkersWanted } from "./configuration.ts";
import { serverLimits } from "./limits.ts";
import { shortened } from "./problem.ts";
import { withSecrets } from "./secret.ts";
import type { ReadFile } from "./source.ts";
import { checkedUrl } from "./upstream-url.ts";
import { workers_max } from "./workers.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface EnvironmentSettings {
  server: Omit<ServerSettings, "workers" | "warm_up_ms">;
  /** Null, of both: the file says it, or the default. */
  workers: WorkersWanted | null;
  warm_up_ms: number | null;
  storage: StorageSettings;
  /** The one engine for every model; `model` is its own name of it, null where each model keeps its route's. */
  upstream: { url: string; apiKey: string | null; model: string | null } | null;
  notices: string[];
}

export const variables = [
  "PORT",
  "HOST",
  "DATABASE_URL",
  "REDIS_URL",
  "SLUICE_DATA_DIR",
  "SLUICE_CONFIG",
  "SLUICE_UPSTREAM_URL",
  "SLUICE_UPSTREAM_KEY",
  "SLUICE_UPSTREAM_MODEL",
  "SLUICE_OPERATOR_PORT",
  "SLUICE_OPERATOR_HOST",
  "SLUICE_OPERATOR_NAMES",
  "SLUICE_OPERATOR_TLS",
  "DATABASE_URL_FILE",
  "REDIS_URL_FILE",
  "SLUICE_UPSTREAM_KEY_FILE",
  "SLUICE_TLS_CERTIFICATE_FILE",
  "SLUICE_TLS_KEY_FILE",
  "REDIS_CA_FILE",
  "REDIS_CERTIFICATE_FILE",
  "REDIS_KEY_FILE",
  "SLUICE_MIGRATE",
  "SLUICE_TRUSTED_PROXIES",
  "SLUICE_CLIENT_ADDRESS_HEADER",
  "SLUICE_WORKERS",
  "SLUICE_WARM_UP_MS",
] as const;
type Variable = (typeof variables)[number];

/** `environment`: with the secrets that stand in files. */
export function readEnvironment(
  written: Environment,
  readFile: ReadFile,
): { environment: Environment } & ({ settings: EnvironmentSettings } | { problems: string[] }) {
  const { environment, problems } = withSecrets(written, readFile);
  const get = (name: Variable): string | null => environment[name]?.trim() || null;
  const add = (name: Variable, message: string) => problems.push(`${name} ${message}`);

  const settings: EnvironmentSettings = {
    server: {
      host: hostOf("HOST", get, add),
      port: portOf("PORT", get, add) ?? 8080,
      operator: operatorOf(get, add),
      ...compact({ tls: identityOf("SLUICE_TLS_CERTIFICATE_FILE", "SLUICE_TLS_KEY_FILE", get, add) }),
      migrates: switchOf("SLUICE_MIGRATE", get, add) ?? true,
      trustedProxies: proxiesOf(get, add),
      clientAddressHeader: addressHeaderOf(get, add),
    },
    workers: workersOf(get, add),
    warm_up_ms: wholeOf("SLUICE_WARM_UP_MS", serverLimits.warm_up_ms.maximum, get, add),
    storage: {
      databaseUrl: addressOf("DATABASE_URL", /^postgres(ql)?:\/\/\S+$/i, "postgres://user@host:5432/name", get, add),
      redisUrl: addressOf("REDIS_URL", /^rediss?:\/\/\S+$/i, "redis://host:6379", get, add),
      ...compact({ redisTls: redisTlsOf(get, add) }),
      dataDir: get("SLUICE_DATA_DIR") ?? "./data",
    },
    upstream: upstreamOf(get, add),
    notices: noticesOf(environment),
  };
  const { server } = settings;
  if (server.operator && server.port !== 0 && server.operator.port === server.port) {
    add("SLUICE_OPERATOR_PORT", `must differ from PORT (${server.port})`);
  }
  return problems.length > 0 ? { environment, problems } : { environment, settings };
}

/** `required`: SLUICE_CONFIG names it, so that its absence is an error. */
export function configurationPath(environment: Environment): { path: string; required: boolean } {
  const named = environment.SLUICE_CONFIG?.trim();
  return named ? { path: named, required: true } : { path: "./sluice.yaml", required: false };
}

type Get = (name: Variable) => string | null;
type Add = (name: Variable, message: string) => void;

function portOf(name: "PORT" | "SLUICE_OPERATOR_PORT", get: Get, add: Add): number | null {
  // A service of Kubernetes named sluice-operator puts its own address into this variable.
  const isLink = get(name)?.startsWith("tcp://");
  const hint = isLink ? "; Kubernetes set it: set enableServiceLinks: false for the pod" : "";
  return wholeOf(name, 65_535, get, (at, message) => add(at, message + hint));
}

/** From 0. */
function wholeOf(name: Variable, maximum: number, get: Get, add: Add): number | null {
  const written = get(name);
  if (written === null) return null;
  if (/^[0-9]{1,5}$/.test(written) && Number(written) <= maximum) return Number(written);
  add(name, `must be a whole number from 0 to ${maximum}, not ${excerpt(written)}`);
  return null;
}

function switchOf(name: "SLUICE_MIGRATE", get: Get, add: Add): boolean | null {
  const written = get(name);
  if (written !== null && written !== "true" && written !== "false")
    add(name, `must be true or false, not ${excerpt(written)}`);
  return written === null ? null : written === "true";
}

function workersOf(get: Get, add: Add): WorkersWanted | null {
  const written = get("SLUICE_WORKERS");
  if (written === null || written === "auto") return written;
  const number = /^[0-9]{1,3}$/.test(written) ? Number(written) : 0;
  if (number >= 1 && number <= workers_max) return number;
  add("SLUICE_WORKERS", `must be auto, or a whole number from 1 to ${workers_max}, not ${excerpt(written)}`);
  return null;
}

function hostOf(name: "HOST" | "SLUICE_OPERATOR_HOST", get: Get, add: Add): string {
  const written = get(name) ?? "127.0.0.1";
  const host = /^\[.*\]$/.test(written) ? written.slice(1, -1) : written;
  if (isIPv6(host) || /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(host)) return host;
  add(name, `must be an address or host name to listen on, such as 127.0.0.1, 0.0.0.0 or ::, not ${excerpt(written)}`);
  return "127.0.0.1";
}

function operatorOf(get: Get, add: Add): ServerSettings["operator"] {
  if (get("SLUICE_OPERATOR_PORT") === null) {
    for (const name of ["SLUICE_OPERATOR_HOST", "SLUICE_OPERATOR_NAMES", "SLUICE_OPERATOR_TLS"] as const)
      if (get(name) !== null) add(name, "needs SLUICE_OPERATOR_PORT, which is not set");
    return null;
  }
  const host = hostOf("SLUICE_OPERATOR_HOST", get, add);
  const port = portOf("SLUICE_OPERATOR_PORT", get, add) ?? 0;
  return { host, port, ...compact({ names: operatorNamesOf(get, add), tls: operatorTlsOf(get, add) }) };
}

const hostName = /^[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?$/;

function operatorNamesOf(get: Get, add: Add): string[] | undefined {
  const written = get("SLUICE_OPERATOR_NAMES");
  if (written === null) return undefined;
  const names = listed(written).map((name) => name.toLowerCase());
  const wrong = names.find((name) => !hostName.test(name));
  if (wrong !== undefined)
    add("SLUICE_OPERATOR_NAMES", `must list host names such as sluice.internal, not ${excerpt(wrong)}`);
  return names;
}

/** Between blanks or commas. */
const listed = (written: string | null) => (written ?? "").split(/[\s,]+/).filter(Boolean);

function operatorTlsOf(get: Get, add: Add): OperatorTls | undefined {
  const written = get("SLUICE_OPERATOR_TLS");
  if (written === null) return undefined;
  if (written === "on" && get("SLUICE_TLS_CERTIFICATE_FILE") === null)
    add("SLUICE_OPERATOR_TLS", "needs SLUICE_TLS_CERTIFICATE_FILE, whose certificate it serves");
  if (written === "on" || written === "proxy" || written === "off") return written;
  add("SLUICE_OPERATOR_TLS", `must be on, proxy or off, not ${excerpt(written)}`);
  return undefined;
}

function proxiesOf(get: Get, add: Add): string[] {
  const networks = listed(get("SLUICE_TRUSTED_PROXIES"));
  const wrong = networks.find((network) => !isNetwork(network));
  if (wrong !== undefined)
    add("SLUICE_TRUSTED_PROXIES", `must list addresses or networks such as 10.0.0.0/8 or ::1, not ${excerpt(wrong)}`);
  return wrong === undefined ? networks : [];
}

function redisTlsOf(get: Get, add: Add): TlsFiles | undefined {
  const caFile = get("REDIS_CA_FILE");
  const identity = identityOf("REDIS_CERTIFICATE_FILE", "REDIS_KEY_FILE", get, add);
  if (caFile === null && !identity) return undefined;
  if (!/^rediss:/i.test(get("REDIS_URL") ?? "")) {
    add("REDIS_URL", "must begin with rediss://, because REDIS_CA_FILE or REDIS_CERTIFICATE_FILE is set");
  }
  return { caFile, identity: identity ?? null };
}

function identityOf(certificate: Variable, key: Variable, get: Get, add: Add): IdentityFiles | undefined {
  const [certificateFile, keyFile] = [get(certificate), get(key)];
  if (certificateFile !== null && keyFile !== null) return { certificateFile, keyFile };
  if (certificateFile !== null) add(certificate, `needs ${key}, which is not set`);
  if (keyFile !== null) add(key, `needs ${certificate}, which is not set`);
  return undefined;
}

/** The address of a store. It may hold a password, so it is never shown. */
function addressOf(
  name: "DATABASE_URL" | "REDIS_URL",
  form: RegExp,
  example: string,
  get: Get,
  add: Add,
): string | null {
  const written = get(name);
  if (written !== null && !form.test(written))
    add(name, `must be a URL such as ${example}; its text is not shown because it may contain a password`);
  return written;
}

function addressHeaderOf(get: Get, add: Add): string {
  const written = get("SLUICE_CLIENT_ADDRESS_HEADER");
  if (written === null) return "x-forwarded-for";
  if (get("SLUICE_TRUSTED_PROXIES") === null)
    add("SLUICE_CLIENT_ADDRESS_HEADER", "needs SLUICE_TRUSTED_PROXIES, which is not set");
  if (!/^[A-Za-z0-9-]{1,64}$/.test(written))
    add("SLUICE_CLIENT_ADDRESS_HEADER", `must name a header such as x-forwarded-for, not ${excerpt(written)}`);
  return written.toLowerCase();
}

function upstreamOf(get: Get, add: Add): EnvironmentSettings["upstream"] {
  const written = get("SLUICE_UPSTREAM_URL");
  const model = get("SLUICE_UPSTREAM_MODEL");
  const key = get("SLUICE_UPSTREAM_KEY");
  if (model !== null && model.length > 512) add("SLUICE_UPSTREAM_MODEL", "must be text of 1 to 512 characters");
  const checked = key === null ? null : checkedKey(key);
  if (checked && "problem" in checked) add("SLUICE_UPSTREAM_KEY", checked.problem);
  if (written === null) {
    // The key alone is no mistake: a file may name it as ${SLUICE_UPSTREAM_KEY}, and `sluice init` writes it so.
    if (model !== null) add("SLUICE_UPSTREAM_MODEL", "needs SLUICE_UPSTREAM_URL, which is not set");
    return null;
  }
  const url = checkedUrl(written);
  if ("problem" in url) {
    add("SLUICE_UPSTREAM_URL", url.problem);
    return null;
  }
  return { url: url.url, apiKey: checked && "key" in checked ? checked.key : null, model };
}

/** Other SLUICE_ variables are none of our business (Kubernetes makes some), unless they look like a slip of the pen. */
function noticesOf(environment: Environment): string[] {
  const known: readonly string[] = variables;
  return Object.keys(environment)
    .filter((name) => name.startsWith("SLUICE_") && !known.includes(name))
    .flatMap((name) => {
      const meant = closestName(name, variables);
      return meant === null ? [] : [`${name} is not read; did you mean ${meant}?`];
    });
}

function excerpt(text: string): string {
  return JSON.stringify(shortened(text));
}

/** Reads the variables of the environment, each by the row that declares it. An empty variable counts as unset. */

import { compact } from "../core/protocol/json.ts";
import { closestName } from "../core/schema/closest.ts";
import type { IdentityFiles, TlsFiles } from "./certificate.ts";
import type { ServerSettings, StorageSettings } from "./configuration.ts";
import { secretKeysIn } from "./sealed.ts";
import { withSecrets } from "./secret.ts";
import { type Filled, filled, type Row, type Written } from "./settings/row.ts";
import type { sections } from "./settings/sections.ts";
import { overrides, environment as ownRows, rows, unbracketed, variables } from "./settings/variables.ts";
import type { ReadFile } from "./source.ts";
import { readText } from "./text.ts";
import { checkedUrl } from "./upstream-url.ts";

export type Environment = Readonly<Record<string, string | undefined>>;
type Values = Filled<typeof ownRows>;

export interface EnvironmentSettings {
  server: Omit<ServerSettings, keyof typeof sections.server.properties>;
  /** The settings of the file that variables override, by section and name. */
  overrides: Overrides;
  storage: StorageSettings;
  /**
   * The one engine that serves every model. `model` null: the engine is asked for each model by the name in the model's
   * route.
   */
  upstream: { url: string; apiKey: string | null; model: string | null } | null;
  notices: string[];
}

type Overrides = { [Name in keyof typeof sections]?: Written<(typeof sections)[Name]["properties"]> };

/** Reads the environment. The returned `environment` includes the secrets that were read from files. */
export function readEnvironment(
  written: Environment,
  readFile: ReadFile,
): { environment: Environment } & ({ settings: EnvironmentSettings } | { problems: string[] }) {
  const { environment, problems } = withSecrets(written, readFile);
  const read: Record<string, unknown> = {};
  for (const [name, row] of Object.entries(rows)) {
    const text = environment[name]?.trim();
    if (!text) continue;
    if (row.needs && !environment[row.needs]?.trim()) problems.push(`${name} needs ${row.needs}, which is not set`);
    const value = readText(row, text);
    if ("problem" in value) problems.push(`${name} ${value.problem}${hintFor(row, text)}`);
    else read[name] = value.value;
  }
  const values = filled(ownRows, read);
  for (const rule of Object.values(rules)) {
    const problem = rule(values);
    if (problem !== null) problems.push(problem);
  }
  return problems.length > 0
    ? { environment, problems }
    : { environment, settings: settingsOf(environment, values, read) };
}

/** The path of sluice.yaml. `required`: SLUICE_CONFIG names it, so that its absence is an error. */
export function configurationPath(environment: Environment): { path: string; required: boolean } {
  const named = environment.SLUICE_CONFIG?.trim();
  return named ? { path: named, required: true } : { path: "./sluice.yaml", required: false };
}

/**
 * A hint for a common mistake: in Kubernetes, a service named sluice-operator puts its own address into
 * SLUICE_OPERATOR_PORT.
 */
function hintFor({ type }: Row, text: string): string {
  return type === "integer" && text.startsWith("tcp://")
    ? "; Kubernetes set it: set enableServiceLinks: false for the pod"
    : "";
}

/** Rules about several variables, by name: each returns a problem, or null. */
const rules: Record<string, (values: Values) => string | null> = {
  consoleHasOwnPort: ({ PORT, SLUICE_OPERATOR_PORT, SLUICE_CONSOLE_PORT: port }) =>
    port && (port === PORT || port === SLUICE_OPERATOR_PORT)
      ? `SLUICE_CONSOLE_PORT must differ from ${port === PORT ? "PORT" : "SLUICE_OPERATOR_PORT"} (${port})`
      : null,
  operatorHasOwnPort: ({ PORT, SLUICE_OPERATOR_PORT }) =>
    PORT !== 0 && SLUICE_OPERATOR_PORT === PORT ? `SLUICE_OPERATOR_PORT must differ from PORT (${PORT})` : null,
  operatorHasCertificate: ({ SLUICE_OPERATOR_TLS, SLUICE_TLS_CERTIFICATE_FILE }) =>
    SLUICE_OPERATOR_TLS === "on" && SLUICE_TLS_CERTIFICATE_FILE === undefined
      ? "SLUICE_OPERATOR_TLS needs SLUICE_TLS_CERTIFICATE_FILE, whose certificate it serves"
      : null,
  redisFilesNeedTls: ({ REDIS_URL, REDIS_CA_FILE, REDIS_CERTIFICATE_FILE }) =>
    (REDIS_CA_FILE ?? REDIS_CERTIFICATE_FILE) !== undefined && !/^rediss:/i.test(REDIS_URL ?? "")
      ? "REDIS_URL must begin with rediss://, because REDIS_CA_FILE or REDIS_CERTIFICATE_FILE is set"
      : null,
};

function settingsOf(environment: Environment, values: Values, read: Record<string, unknown>): EnvironmentSettings {
  return {
    server: {
      host: unbracketed(values.HOST),
      port: values.PORT,
      operator: operatorOf(values),
      ...compact({ console: consoleOf(values) }),
      ...compact({ tls: identityOf(values.SLUICE_TLS_CERTIFICATE_FILE, values.SLUICE_TLS_KEY_FILE) }),
      migrates: values.SLUICE_MIGRATE,
      ...compact({ databaseWait_ms: values.SLUICE_WAIT_FOR_DATABASE_MS }),
      trustedProxies: values.SLUICE_TRUSTED_PROXIES,
      clientAddressHeader: values.SLUICE_CLIENT_ADDRESS_HEADER.toLowerCase(),
      ...compact({ secretKeys: secretKeysIn(values.SLUICE_SECRET_KEY ?? "") ?? undefined }),
    },
    overrides: overridesIn(read),
    storage: {
      databaseUrl: values.DATABASE_URL ?? null,
      redisUrl: values.REDIS_URL ?? null,
      ...compact({ redisTls: redisTlsOf(values) }),
      dataDir: values.SLUICE_DATA_DIR,
    },
    upstream: upstreamOf(values),
    notices: misspelled(environment),
  };
}

function upstreamOf({ SLUICE_UPSTREAM_URL, SLUICE_UPSTREAM_KEY, SLUICE_UPSTREAM_MODEL }: Values) {
  const checked = checkedUrl(SLUICE_UPSTREAM_URL ?? "");
  if ("problem" in checked) return null;
  return { url: checked.url, apiKey: SLUICE_UPSTREAM_KEY ?? null, model: SLUICE_UPSTREAM_MODEL ?? null };
}

function overridesIn(read: Record<string, unknown>): Overrides {
  const found: Record<string, Record<string, unknown>> = {};
  for (const { variable, section, name } of overrides)
    if (read[variable] !== undefined) found[section] = { ...found[section], [name]: read[variable] };
  return found as Overrides;
}

function operatorOf(values: Values): ServerSettings["operator"] {
  if (values.SLUICE_OPERATOR_PORT === undefined) return null;
  const names = values.SLUICE_OPERATOR_NAMES?.map((name) => name.toLowerCase());
  const host = unbracketed(values.SLUICE_OPERATOR_HOST);
  return { host, port: values.SLUICE_OPERATOR_PORT, ...compact({ names, tls: values.SLUICE_OPERATOR_TLS }) };
}

function consoleOf({ SLUICE_CONSOLE_PORT: port, SLUICE_CONSOLE_HOST: host }: Values): ServerSettings["console"] {
  return port === undefined ? undefined : { host: unbracketed(host), port };
}

function redisTlsOf({ REDIS_CA_FILE, REDIS_CERTIFICATE_FILE, REDIS_KEY_FILE }: Values): TlsFiles | undefined {
  const identity = identityOf(REDIS_CERTIFICATE_FILE, REDIS_KEY_FILE) ?? null;
  if (REDIS_CA_FILE === undefined && identity === null) return undefined;
  return { caFile: REDIS_CA_FILE ?? null, identity };
}

function identityOf(certificateFile?: string, keyFile?: string): IdentityFiles | undefined {
  return certificateFile === undefined || keyFile === undefined ? undefined : { certificateFile, keyFile };
}

/**
 * Variables that look like misspelled ones. Kubernetes makes other SLUICE_ variables, which are not reported, nor are
 * the keys of several engines, which `sluice init` names after them.
 */
function misspelled(environment: Environment): string[] {
  return Object.keys(environment)
    .filter((name) => /^SLUICE_(?!UPSTREAM_KEY_)/.test(name) && !variables.includes(name))
    .flatMap((name) => {
      const suggestion = closestName(name, variables);
      return suggestion === null ? [] : [`${name} is not read; did you mean ${suggestion}?`];
    });
}

/**
 * Makes one Configuration of the environment, sluice.yaml and the defaults, or returns all problems. Files are read
 * through a function that is passed in.
 *
 * The environment overrides the file, and the file overrides the defaults. SLUICE_UPSTREAM_URL sends every model of the
 * catalog in force to that engine. `models` of a file replace the whole default catalog; its `plans` are added to the
 * default ones; all other settings override one by one.
 */
import { assemble } from "./assemble.ts";
import { type IdentityFiles, readCertificates, readIdentity, type TlsFiles } from "./certificate.ts";
import type { Configuration } from "./configuration.ts";
import { configurationPath, type Environment, readEnvironment } from "./environment.ts";
import { readConfigurationFile } from "./file.ts";
import { ConfigurationError } from "./problem.ts";
import type { ConfigurationFile } from "./settings/file.ts";
import { type ReadFile, reasonOf } from "./source.ts";
import { tlsOf } from "./tls.ts";
import { whyNoWorkers } from "./workers.ts";

interface ConfigurationSources {
  env: Environment;
  readFile: ReadFile;
}

export function loadConfiguration({ env, readFile }: ConfigurationSources): Configuration | ConfigurationError {
  const environment = readEnvironment(env, readFile);
  const source = readSource(environment.environment, readFile);
  if ("problems" in environment || "problems" in source) {
    return new ConfigurationError([environment, source].flatMap((part) => ("problems" in part ? part.problems : [])));
  }
  const { server, storage, overrides } = environment.settings;
  const unusable = unusableFiles(server.tls, storage.redisTls, readFile);
  if (unusable.length > 0) return new ConfigurationError(unusable);
  const tls = tlsOf(source.file ?? {}, readFile);
  if ("problems" in tls) return new ConfigurationError(tls.problems);
  const configuration = assemble(environment.settings, source.file, tls);
  const refusal = whyNoWorkers(configuration.server.workers, storage);
  const workers = overrides.server?.workers === undefined ? "server.workers" : "SLUICE_WORKERS";
  if (refusal !== null) return new ConfigurationError([`${workers} ${refusal}`]);
  const shared = whyNoFleet(configuration);
  if (shared !== null) return new ConfigurationError([shared]);
  if (configuration.identity?.issuers.length && configuration.server.secretKeys === undefined)
    return new ConfigurationError([needsSecretKey]);
  const console = whyNoConsole(configuration);
  if (console !== null) return new ConfigurationError([console]);
  return { ...configuration, notices: [...configuration.notices, ...source.notices] };
}

/** The problems of the certificates and keys that the environment names. */
function unusableFiles(tls: IdentityFiles | undefined, redis: TlsFiles | undefined, readFile: ReadFile): string[] {
  const read = [
    { names: "SLUICE_TLS_CERTIFICATE_FILE and SLUICE_TLS_KEY_FILE name", of: tls && readIdentity(tls, readFile) },
    {
      names: "REDIS_CERTIFICATE_FILE and REDIS_KEY_FILE name",
      of: redis?.identity && readIdentity(redis.identity, readFile),
    },
    { names: "REDIS_CA_FILE names", of: redis?.caFile && readCertificates(redis.caFile, readFile) },
  ];
  return read.flatMap(({ names, of }) => (of && "problem" in of ? [`${names} ${of.problem}`] : []));
}

type Source = { file: ConfigurationFile | null; notices: string[] } | { problems: string[] };

function readSource(env: Environment, readFile: ReadFile): Source {
  const { path, required } = configurationPath(env);
  let bytes: Uint8Array | null;
  try {
    bytes = readFile(path);
    if (bytes === null && required) return { problems: [`${path}: the file that SLUICE_CONFIG names does not exist`] };
    if (bytes === null) return { file: null, notices: readFile("./sluice.yml") ? [misnamed] : [] };
  } catch (cause) {
    return { problems: [`${path}: cannot be read: ${reasonOf(cause)}`] };
  }
  const upstreamFromEnvironment = Boolean(env.SLUICE_UPSTREAM_URL?.trim());
  const read = readConfigurationFile({ bytes, path, environment: env, readFile, upstreamFromEnvironment });
  return "problems" in read ? read : { file: read.file, notices: [] };
}

/**
 * The reason why an engine's limit cannot be shared by the nodes of a fleet: Redis is missing. A process with the
 * embedded database needs none, because it is the whole fleet.
 */
function whyNoFleet({ upstreams, storage: { databaseUrl, redisUrl } }: Configuration): string | null {
  const shared = upstreams.find(({ capacity }) => capacity?.isShared);
  if (!shared || redisUrl !== null || databaseUrl === null) return null;
  return `upstreams.${shared.name}.scope is fleet, which needs Redis (REDIS_URL), because nodes share the limit there: set it, or remove the setting and divide concurrent_max among the nodes`;
}

const needsSecretKey =
  "identity.issuers needs SLUICE_SECRET_KEY, which is not set; make one with openssl rand -base64 32, the same for all nodes";

export const loopbackHosts = ["127.0.0.1", "localhost", "::1"];

/**
 * The reason why there can be no console; null: there can. The console's sessions are bound to its address, which must
 * be configured unless the console listens only on this machine.
 */
function whyNoConsole({ identity, server: { console, workers } }: Configuration): string | null {
  if (!console) return null;
  if (console.port === 0 && workers !== 1)
    return "SLUICE_CONSOLE_PORT must name a port, because there are several workers";
  if (identity?.consoleUrl || loopbackHosts.includes(console.host)) return null;
  return "SLUICE_CONSOLE_PORT needs identity.console_url in sluice.yaml, the address at which browsers reach the console, because SLUICE_CONSOLE_HOST is not this machine alone";
}
const misnamed = "./sluice.yml is not read; rename it to sluice.yaml, or set SLUICE_CONFIG";

/**
 * The variables of the environment, one row each: addresses, stores, files, the engine. Settings of the file may have a
 * variable too, which their own rows name.
 */
import { isIPv6 } from "node:net";
import { isNetwork } from "../../core/auth/network.ts";
import { checkedKey } from "../api-key.ts";
import { shortened } from "../problem.ts";
import { secretKeysIn } from "../sealed.ts";
import { checkedUrl } from "../upstream-url.ts";
import { choice, flag, list, type Row, type Rows, text, whole } from "./row.ts";
import { sections } from "./sections.ts";

const port = { minimum: 0, maximum: 65_535 };

/**
 * Makes a check of a text's form. Its result completes a sentence that begins with the variable's name; null if the
 * text has the form.
 */
const form = (has: (text: string) => boolean, must: string) => (text: string) =>
  has(text) ? null : `${must}, not ${JSON.stringify(shortened(text))}`;

const listening = form(
  (host) => isIPv6(unbracketed(host)) || /^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$/.test(unbracketed(host)),
  "must be an address or host name to listen on, such as 127.0.0.1, 0.0.0.0 or ::",
);

export function unbracketed(host: string): string {
  return /^\[.*\]$/.test(host) ? host.slice(1, -1) : host;
}

/** Makes a check of a store's URL. The URL may have a password, so no message shows it. */
const address = (pattern: RegExp, example: string) => (text: string) =>
  pattern.test(text)
    ? null
    : `must be a URL such as ${example}; its text is not shown because it may contain a password`;

const redisForm = address(/^rediss?:\/\/\S+$/i, "redis://host:6379");

/**
 * Refuses a URL that the client of Redis would misread, or would refuse only when it connects, without naming the URL.
 */
const redisAddress = (text: string) =>
  redisForm(text) ??
  (isWhole(text)
    ? null
    : "is not a URL: a /, #, ?, @ or % in its password must be escaped (%2F, %23, %3F, %40, %25); its text is not shown");

function isWhole(text: string): boolean {
  try {
    const { username, password, pathname, search, hash } = new URL(text);
    decodeURIComponent(username + password);
    return !(pathname + search + hash).includes("@");
  } catch {
    return false;
  }
}

const refused = (check: (text: string) => object) => (text: string) => {
  const checked: { problem?: string } = check(text);
  return checked.problem ?? null;
};

const items = (problem: (item: string) => string | null) => text({ problem }, "");

export const environment = {
  PORT: whole({ ...port, default: 8080 }, "The port to listen on; 0: the system chooses one."),
  HOST: text({ default: "127.0.0.1", problem: listening }, "The address to listen on. The image sets 0.0.0.0."),
  DATABASE_URL: text(
    {
      writeOnly: true,
      absent: "the embedded database",
      problem: address(/^postgres(ql)?:\/\/\S+$/i, "postgres://user@host:5432/name"),
    },
    "`postgres://…`; for `sslmode` and its files, see [TLS](#tls).",
  ),
  REDIS_URL: text(
    { writeOnly: true, problem: redisAddress },
    "`redis://…` or `rediss://…`, for several nodes on one Postgres; for a cluster, the URL of any node.",
  ),
  SLUICE_DATA_DIR: text({ default: "./data" }, "The folder of the embedded database."),
  SLUICE_MIGRATE: flag({ default: true }, "`false`: refuse a database that is not migrated, as with `--no-migrate`."),
  SLUICE_WAIT_FOR_DATABASE_MS: whole(
    { minimum: 0, maximum: 31_536_000_000, absent: "as long as it takes" },
    "How long a start [waits for Postgres](operating.md#starting-before-the-database); 0: not at all.",
  ),
  SLUICE_CONFIG: text({ absent: "./sluice.yaml, if it exists" }, "The configuration file, which must exist."),
  SLUICE_UPSTREAM_URL: text(
    {
      problem: refused(checkedUrl),
    },
    "One engine for every model, see [below](#one-engine-no-file).",
  ),
  // Without SLUICE_UPSTREAM_URL this key is not a mistake: a file may refer to it as ${SLUICE_UPSTREAM_KEY}, as the
  // file of `sluice init` does.
  SLUICE_UPSTREAM_KEY: text(
    {
      writeOnly: true,
      problem: refused(checkedKey),
    },
    "The key for that engine.",
  ),
  SLUICE_UPSTREAM_MODEL: text(
    {
      needs: "SLUICE_UPSTREAM_URL",
      problem: (name) => (name.length > 512 ? "must be text of 1 to 512 characters" : null),
    },
    "That engine's name for all models.",
  ),
  SLUICE_OPERATOR_PORT: whole(
    port,
    "A second port, for `/metrics` and [management](management.md). Without it, metrics are on `PORT`, and management is off.",
  ),
  SLUICE_OPERATOR_HOST: text(
    { default: "127.0.0.1", needs: "SLUICE_OPERATOR_PORT", problem: listening },
    "The address of that second port.",
  ),
  SLUICE_OPERATOR_TLS: choice(
    ["on", "proxy", "off"],
    { needs: "SLUICE_OPERATOR_PORT", absent: "off" },
    "TLS of that port: `on`, with the certificate of `PORT`; `proxy`, if something in front speaks TLS; `off`: only the node's own machine may manage.",
  ),
  SLUICE_OPERATOR_NAMES: list(
    items(
      form(
        (name) => /^[a-z0-9]([a-z0-9._-]{0,251}[a-z0-9])?$/i.test(name),
        "must list host names such as sluice.internal",
      ),
    ),
    { needs: "SLUICE_OPERATOR_PORT" },
    "Further [names](management.md#set-up) of that port, such as `sluice.internal, sluice-1`.",
  ),
  SLUICE_CONSOLE_PORT: whole(
    port,
    "The port of the [console](console.md). Needs `identity.console_url`, unless it is for this machine alone.",
  ),
  SLUICE_CONSOLE_HOST: text(
    { default: "127.0.0.1", needs: "SLUICE_CONSOLE_PORT", problem: listening },
    "The address of that port.",
  ),
  SLUICE_TRUSTED_PROXIES: list(
    items(form(isNetwork, "must list addresses or networks such as 10.0.0.0/8 or ::1")),
    { default: [] },
    "Your proxies, such as `10.0.0.0/8, ::1`, from which Sluice takes the client's address. Without it, all clients behind a load balancer share the limits of one address.",
  ),
  SLUICE_CLIENT_ADDRESS_HEADER: text(
    {
      default: "x-forwarded-for",
      needs: "SLUICE_TRUSTED_PROXIES",
      problem: form((name) => /^[A-Za-z0-9-]{1,64}$/.test(name), "must name a header such as x-forwarded-for"),
    },
    "The header in which these proxies name their client, such as `x-real-ip` or `forwarded`.",
  ),
  SLUICE_SECRET_KEY: text(
    {
      writeOnly: true,
      problem: (keys) =>
        secretKeysIn(keys)
          ? null
          : "must be 32 bytes in base64, or two such keys, such as openssl rand -base64 32 prints",
    },
    "[32 bytes in base64](identity.md#the-secret-key) that encrypt secrets in the database; needed with `identity`.",
  ),
  SLUICE_TLS_CERTIFICATE_FILE: text(
    { needs: "SLUICE_TLS_KEY_FILE" },
    "The certificate with which `PORT` speaks HTTPS, see [TLS](#tls).",
  ),
  SLUICE_TLS_KEY_FILE: text({ needs: "SLUICE_TLS_CERTIFICATE_FILE" }, "Its private key."),
  REDIS_CA_FILE: text({ absent: "the system's authorities" }, "The authorities that vouch for Redis."),
  REDIS_CERTIFICATE_FILE: text({ needs: "REDIS_KEY_FILE" }, "The certificate that Sluice shows to Redis."),
  REDIS_KEY_FILE: text({ needs: "REDIS_CERTIFICATE_FILE" }, "Its private key."),
};

/** A variable, with the setting of the file that it overrides. */
interface Override {
  variable: string;
  section: string;
  name: string;
  row: Row;
}

export const overrides: readonly Override[] = Object.entries(sections).flatMap(([section, { properties }]) =>
  Object.entries<Row>(properties).flatMap(([name, row]) =>
    row.variable === undefined ? [] : [{ variable: row.variable, section, name, row }],
  ),
);

/** The rows of all variables by name, without the `NAME_FILE` variables of secrets. */
export const rows: Rows = {
  ...environment,
  ...Object.fromEntries(overrides.map(({ variable, row }) => [variable, row])),
};

/** The names of variables that are secrets: for each, `NAME_FILE` can name a file that contains the secret. */
export const secretVariables = Object.keys(rows).filter((name) => rows[name]!.writeOnly);

export const variables: readonly string[] = [...Object.keys(rows), ...secretVariables.map((name) => `${name}_FILE`)];

/**
 * CONFIG: makes one checked value of the environment and sluice.yaml, for cli and node. It is made at the start and at
 * each reload; nothing else reads the environment.
 */

import type { Billing } from "../admin/management/context.ts";
import type { Calendar } from "../admin/store/calendar.ts";
import type { Identity } from "../core/auth/identity.ts";
import type { Catalog } from "../core/routing/catalog.ts";
import type { Share } from "../core/routing/fair-queue.ts";
import type { Upstream } from "../core/upstream/target.ts";
import type { IdentityFiles, TlsFiles } from "./certificate.ts";
import { filled } from "./settings/row.ts";
import { calendar, type Sections } from "./settings/sections.ts";

/** The configuration. Settings of the file's sections are described by their rows: settings/sections.ts. */
export interface Configuration extends Omit<Sections, "server" | "identity" | "smtp"> {
  catalog: Catalog;
  /** The share of each plan among requests that wait for an engine. It applies to this process, as the queue does. */
  shares: ReadonlyMap<string, Share>;
  /** All engines in force, also those in the file to which no model is routed yet. */
  upstreams: Upstream[];
  /** Absent: somebody wrote the engines' names for the models, or there is no engine. */
  namesFrom?: NamesFrom;
  /** The issuers and rules; null if nobody can sign in through an issuer. */
  identity: Identity | null;
  smtp: SmtpSettings | null;
  server: ServerSettings;
  storage: StorageSettings;
  /** Whether there is a sluice.yaml. Without one and without Postgres, the service is a demonstration. */
  hasFile: boolean;
  /** Hints for the operator, one sentence each. They are logged at start and at reload. */
  notices: string[];
}

/** The engines that serve the default catalog, and whose names for its models nobody wrote. */
export interface NamesFrom {
  engines: readonly Upstream[];
  /** The names that the engines listed last. Empty: they have listed none yet. */
  listed: readonly string[];
  /** Whether the engines are to be asked again, because none of them lists models now. */
  isAwaited: boolean;
}

/** The server of mail, with the authorities in PEM that are trusted for it; null: the system's. */
export type SmtpSettings = Omit<NonNullable<Sections["smtp"]>, "ca_file"> & { ca: string | null };

/** The currency of every amount, and the name of the biller. */
export function billingOf({ metering, reports }: Pick<Configuration, "metering" | "reports">): Billing {
  return { currency: metering.currency, provider: reports.provider };
}

/** The calendar of organizations that are created without one. */
export function calendarOf({ calendar: written }: Sections["metering"]): Calendar | null {
  if (!written) return null;
  const { zone, week_starts: weekStarts, month_starts: monthStarts } = filled(calendar.properties, written);
  return { zone, weekStarts, monthStarts };
}

export type ServiceLimits = Sections["limits"];

/**
 * TLS of the operator's port. `on`: with the certificate of the main port. `proxy`: a proxy in front has the
 * certificate. `off`: no TLS, so management is allowed from the node alone.
 */
export type OperatorTls = "off" | "on" | "proxy";

interface OperatorSettings {
  host: string;
  port: number;
  /**
   * The host names, in lower case, under which the port may be called, in addition to addresses, `localhost` and
   * `host`. Absent: none.
   */
  names?: string[];
  /** TLS of the port; absent: off. */
  tls?: OperatorTls;
}

type ServerSection = Sections["server"];

export interface ServerSettings extends ServerSection {
  host: string;
  /** The port to listen on; 0 lets the system choose one. */
  port: number;
  /** The operator's own listener (metrics, management), or null: then metrics are on the main port. */
  operator: OperatorSettings | null;
  /** The console's own listener. Absent: there is none. */
  console?: { host: string; port: number };
  /** The files of the certificate with which the main port speaks HTTPS; absent: HTTP. */
  tls?: IdentityFiles;
  /** Whether a start may bring an older database up to date. */
  migrates: boolean;
  /** How long a start waits for Postgres. Absent: as long as it takes. */
  databaseWait_ms?: number;
  /** Addresses and networks of the proxies that may report the client's address. */
  trustedProxies: string[];
  /** The name of the header with the client's address, in lower case. */
  clientAddressHeader: string;
  /**
   * The keys that encrypt small secrets at rest; the first is used for new ones. Absent: no key is set, because nothing
   * needs one.
   */
  secretKeys?: readonly Uint8Array[];
}

export interface StorageSettings {
  databaseUrl: string | null;
  redisUrl: string | null;
  /** TLS of a `rediss://` URL. Absent: the system's authorities, and no certificate of our own. */
  redisTls?: TlsFiles;
  dataDir: string;
}

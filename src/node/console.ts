/** Wires the console: its sessions, its addresses, and the links of a node on the same machine. */

import type { ConsoleFiles } from "../admin/console/files.ts";
import type { ConsoleLinking } from "../admin/management/context.ts";
import type { ServerSettings } from "../config/configuration.ts";
import { loopbackHosts } from "../config/load.ts";
import { unknownCredentials } from "../core/auth/unknown-credentials.ts";
import { freePort } from "../core/http/listen.ts";
import type { Upstream } from "../core/upstream/target.ts";
import { forgetting } from "../core/usage/forgetting.ts";
import { type ConsoleParts, consoleLife } from "../features/identity/console.ts";
import type { IdentityParts } from "../features/identity/identity.ts";
import { consoleLinks, link_ms } from "../features/identity/links.ts";
import { mailSubscriptions } from "../stores/postgres/mail-recipients.ts";
import { operatorSessions } from "../stores/postgres/operator-sessions.ts";
import { operators } from "../stores/postgres/operators.ts";
import type { Administering } from "./administering.ts";
import { disposable, type Foundation } from "./foundation.ts";
import { randomBytes } from "./sealing.ts";
import { unknownLimitsOf } from "./signing-in.ts";

export interface ConsoleSettings {
  host: string;
  port: number;
}

export type Console = ReturnType<typeof startConsole>;

/** The URLs of this process, known once it listens. */
interface Listening {
  console: string | null;
  service: string | null;
}

interface ConsoleDependencies extends Pick<Administering, "typedToken"> {
  people: IdentityParts | null;
  files: ConsoleFiles;
}

export function startConsole(
  { serving, settings, outage }: Foundation,
  { people, files, typedToken }: ConsoleDependencies,
) {
  const { database, configuration } = serving;
  const ending = new AsyncDisposableStack();
  const { server, limits } = settings;
  const listening: Listening = { console: null, service: null };
  const publicUrl = () => configuration.current().identity?.consoleUrl ?? null;
  /**
   * Whether the console is only for this machine: with the embedded database, without a public URL, and on loopback.
   */
  const isLocal =
    database.kind === "pglite" && publicUrl() === null && loopbackHosts.includes(server.console?.host ?? "127.0.0.1");
  const links = isLocal ? consoleLinks(randomBytes, () => performance.now()) : null;
  const parts: ConsoleParts = {
    people,
    sessions: operatorSessions(database),
    operators: operators(database),
    typedToken,
    links,
    origins() {
      const url = publicUrl();
      return url === null ? loopbackOrigins(listening.console) : [url];
    },
    serviceUrl: () => configuration.current().identity?.serviceUrl ?? listening.service ?? "",
    // Failed attempts from one address are counted together, for sign-ins of people and of operators.
    unknown: people?.unknown ?? unknownCredentials(unknownLimitsOf(limits), () => performance.now()),
    random: randomBytes,
  };
  const rounds = forgetting({
    forget: async () => (await parts.sessions.forget(consoleLife(parts))) >= 1000,
    failed: outage("sessions_unforgotten"),
  });
  ending.defer(() => rounds.stop());
  const link = (user: string) => `${parts.origins()[0]}/#link=${links!.create(user)}`;
  return disposable(
    {
      parts,
      files,
      subscriptions: mailSubscriptions(database),
      /** The host and port of the console; null: there is no console. */
      settings: server.console ?? (isLocal ? defaultSettings(server, configuration.current().upstreams) : null),
      /** Whether the console listens only once a user of this machine has asked for it. */
      isOnDemand: server.console === undefined,
      isLocal,
      listensAt: (urls: Partial<Listening>) => void Object.assign(listening, urls),
      /** Makes a link for this user of the operating system, once the console listens. */
      link,
      /** The maker of links, for the administration's verb that returns one. `open` makes the console listen. */
      linking: (open: () => void): ConsoleLinking | null =>
        links && {
          async link(actor) {
            open();
            return { url: link(actor.replace(/^cli:/, "")), expiresAt: new Date(Date.now() + link_ms) };
          },
        },
    },
    ending,
  );
}

/** All origins under which a browser on this machine may have opened the console. */
function loopbackOrigins(url: string | null): string[] {
  if (url === null) return [];
  const { protocol, port } = new URL(url);
  return ["127.0.0.1", "localhost", "[::1]"].map((host) => `${protocol}//${host}${port === "" ? "" : `:${port}`}`);
}

/**
 * The settings of a console that is not configured: the port after the service's, or any free one. An engine of this
 * machine keeps its port, even if it does not run yet.
 */
function defaultSettings({ port }: ServerSettings, upstreams: readonly Pick<Upstream, "url">[]): ConsoleSettings {
  const engines = upstreams.map(({ url }) => new URL(url));
  const isEngines = engines.some((own) => isLoopback(own.hostname) && Number(own.port) === port + 1);
  return { host: "127.0.0.1", port: port === 0 || port === 65_535 || isEngines ? 0 : port + 1 };
}

const isLoopback = (host: string) => loopbackHosts.includes(host.replace(/^\[|\]$/g, ""));

/** The settings, with a free port in place of one that is taken. */
export function withFreePort({ host, port }: ConsoleSettings): ConsoleSettings {
  try {
    return { host, port: freePort({ host, port }) };
  } catch {
    return { host, port: freePort({ host, port: 0 }) };
  }
}

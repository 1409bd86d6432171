/** The server on this machine, as the environment with which it was started describes it. */
import { type Environment, type EnvironmentSettings, readEnvironment } from "../../config/environment.ts";
import { readFileBounded } from "../../config/source.ts";

/** The server's settings in this environment. Throws an Error for invalid settings. */
export function localSettings(environment: Environment): EnvironmentSettings["server"] {
  const read = readEnvironment(environment, readFileBounded);
  if ("problems" in read) throw new Error(read.problems.join("; "));
  return read.settings.server;
}

/** Hosts at which a server listens on all addresses. */
export const anywhere = ["0.0.0.0", "::", ""];

/** The host to write into a URL for a server that listens at this host. */
export const urlHost = (host: string): string =>
  anywhere.includes(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;

export const answer_ms = 5000;

/**
 * Sends a GET to a server. The certificate of the node's own server (`isOwn`) has its public name and not that of this
 * machine, so it is not verified; nothing secret is sent.
 */
export const answerOf = (url: string | URL, isOwn: boolean): Promise<Response> =>
  fetch(url, {
    proxy: false,
    redirect: "manual",
    signal: AbortSignal.timeout(answer_ms),
    tls: { rejectUnauthorized: !isOwn },
  });

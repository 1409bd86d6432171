/**
 * The findings of `sluice doctor` about the ports of the operator and the console: who can reach them, and whether they
 * respond.
 */
import { isIP } from "node:net";
import type { Configuration, ServerSettings } from "../../config/configuration.ts";
import { isPublicAddress } from "../../features/notices/webhook.ts";
import { answer_ms, answerOf, anywhere, urlHost } from "./local-server.ts";
import { Warning } from "./warning.ts";

/** The first public address at which the host listens; null: it listens only on this machine and private networks. */
function publicAddress(host: string, addresses: readonly string[]): string | null {
  const listening = anywhere.includes(host) ? addresses : [host];
  return listening.find((address) => isIP(address.split("%")[0]!) !== 0 && isPublicAddress(address)) ?? null;
}

/**
 * The finding of `sluice doctor` about the operator's port. The metrics there do not name organizations, but they show
 * models and their use.
 */
export function operatorPortSays({ operator }: ServerSettings, addresses: readonly string[]): string {
  const { host, port, tls } = operator!;
  const seen = publicAddress(host, addresses);
  if (seen === null) return `/metrics on ${host}, port ${port}`;
  const tokens = tls === "proxy" ? ", and operators' tokens that pass no proxy can be read on the way" : "";
  throw new Warning(
    `port ${port} is public at ${seen}: everybody who reaches it can read /metrics${tokens}; set SLUICE_OPERATOR_HOST to a private address`,
  );
}

/**
 * The finding of `sluice doctor` about the console's port. A node with the embedded database serves a console for its own
 * machine, once `sluice console` has requested it.
 */
export async function consolePortSays(
  { identity, server, storage }: Configuration,
  addresses: readonly string[],
  isRunning: boolean,
): Promise<string> {
  const { console, tls, trustedProxies } = server;
  if (!console)
    return storage.databaseUrl === null && identity?.consoleUrl == null
      ? "for this machine alone; to open it, run: sluice console"
      : "none; to have one, set SLUICE_CONSOLE_PORT";
  const { host, port } = console;
  const seen = publicAddress(host, addresses);
  if (seen !== null && !tls && trustedProxies.length === 0)
    throw new Warning(
      `port ${port} is public at ${seen} without TLS; set SLUICE_TLS_CERTIFICATE_FILE, or have a proxy in front that speaks TLS, set SLUICE_CONSOLE_HOST to the address at which it asks, and SLUICE_TRUSTED_PROXIES to its own`,
    );
  const address = identity?.consoleUrl ?? `http${tls ? "s" : ""}://${urlHost(host)}:${port}`;
  if (!isRunning || port === 0)
    return `on ${host}, port ${port}, at ${address}; not asked, because the server does not run`;
  const local = `http${tls ? "s" : ""}://${urlHost(host)}:${port}`;
  const problem = await whyNoConsole(local, true);
  if (problem !== null)
    throw new Error(`${local}: ${problem}; restart the server with this environment, or correct SLUICE_CONSOLE_PORT`);
  if (address === local) return `answers at ${address}`;
  const further = await whyNoConsole(address, false);
  if (further === null) return `answers on ${host}, port ${port}, and at ${address}`;
  throw new Warning(
    `answers on ${host}, port ${port}, but not from here at identity.console_url ${address}: ${further}; browsers need that address`,
  );
}

/** The reason why no console responds at this origin; null: a console responds. */
async function whyNoConsole(origin: string, isOwn: boolean): Promise<string | null> {
  try {
    const response = await answerOf(`${origin}/session/ways`, isOwn);
    const ways: unknown = await response.json().catch(() => null);
    const isConsole = response.ok && typeof ways === "object" && ways !== null && "issuers" in ways;
    return isConsole ? null : `something else answers (${response.status})`;
  } catch (cause) {
    const { name, code = "" } = cause as { name?: string; code?: string };
    if (name === "TimeoutError") return `no answer within ${answer_ms / 1000} s`;
    if (/CERT|SIGNATURE/.test(code))
      return `its certificate is not trusted here (${code}); if the authority is your own, set NODE_EXTRA_CA_CERTS to its file`;
    return "nothing answers";
  }
}

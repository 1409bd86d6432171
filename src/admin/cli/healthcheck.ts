/** `sluice healthcheck`: is the server on this machine ready? Made for container images without curl. */
import type { Command } from "commander";
import { codeOf } from "./calling.ts";
import { answer_ms, answerOf, localSettings, urlHost } from "./local-server.ts";
import type { CommandContext } from "./services.ts";

export function addHealthcheckCommand(program: Command, { services }: CommandContext): void {
  program
    .command("healthcheck")
    .description("exit with 0 if the local server is ready, with 1 if it is not")
    .option("--url <url>", "URL of the server (default: the local server, by HOST and PORT)")
    .action(async ({ url }: { url?: string }, command: Command) => {
      const target = url === undefined ? localUrl(services.environment) : readyUrl(url);
      if (!target) command.error(`error: '${url}' is not a URL`);
      const health = await healthOf(target, url === undefined);
      if (!health.ready) throw new Error(health.message);
      services.terminal.out("ready\n");
    });
}

export interface Health {
  ready: boolean;
  /** Whether any response came from the server. */
  answered: boolean;
  message: string;
  /** The warnings by the name of their check, if the response lists all checks. */
  warnings: ReadonlyMap<string, string>;
}

/** Calls /readyz. That no server listens at the address is a result, not an error. */
export async function healthOf(url: URL, isOwn: boolean): Promise<Health> {
  try {
    const response = await answerOf(url, isOwn);
    const body = await response.text();
    const warnings = warningsIn(body);
    if (response.ok) return { ready: true, answered: true, message: "ready", warnings };
    const message = `not ready (${response.status}): ${reason(body).slice(0, 500)}`;
    return { ready: false, answered: true, message, warnings };
  } catch (cause) {
    const refused = noListener.has(codeOf(cause) ?? "");
    const isLate = cause instanceof Error && cause.name === "TimeoutError";
    const problem = refused
      ? "nothing answers"
      : isLate
        ? `no answer within ${answer_ms / 1000} s`
        : "no HTTP response";
    return { ready: false, answered: !refused, message: `${problem} at ${url.origin}`, warnings: new Map() };
  }
}

const noListener = new Set(["ECONNREFUSED", "ConnectionRefused", "FailedToOpenSocket", "ENOTFOUND", "EHOSTUNREACH"]);

/** The URL of the local server, if it was started with this environment. */
export function localUrl(environment: Readonly<Record<string, string | undefined>>): URL {
  const { host, port, tls } = localSettings(environment);
  if (port === 0) throw new Error("PORT is 0, so the server's port is unknown. Specify the server with --url.");
  return new URL(`${tls ? "https" : "http"}://${urlHost(host)}:${port}/readyz`);
}

/** The given URL, with the path /readyz if it has no path. Null if it is no HTTP URL. */
function readyUrl(url: string): URL | null {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return null;
  const parsed = new URL(url);
  if (parsed.pathname === "/") parsed.pathname = "/readyz";
  return parsed;
}

/** The checks that /readyz reports as failing; if the body lists none, the body itself. */
function reason(body: string): string {
  const { checks, error } = answerIn(body);
  if (checks.length === 0) return String(error?.message ?? body);
  return checks.map(([name, status]) => `${name}: ${status}`).join("; ");
}

const warning = "warning: ";

function warningsIn(body: string): ReadonlyMap<string, string> {
  const { checks } = answerIn(body);
  const warned = checks.filter(([, status]) => status.startsWith(warning));
  return new Map(warned.map(([name, status]) => [name, status.slice(warning.length)]));
}

/** The checks in the body of /readyz; none if another server sent something else. */
function answerIn(body: string): { checks: [string, string][]; error?: { message?: unknown } } {
  try {
    const { checks, error } = JSON.parse(body);
    const listed = typeof checks === "object" && checks !== null ? Object.entries(checks) : [];
    return { checks: listed.map(([name, status]) => [name, String(status)]), error };
  } catch {
    return { checks: [] };
  }
}

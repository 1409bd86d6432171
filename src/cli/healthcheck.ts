/** `sluice healthcheck`: is the server on this machine ready? For images that have no curl. */
import type { Command } from "commander";
import { Refusal } from "../auth/refusal.ts";
import { readEnvironment } from "../config/environment.ts";
import type { Building } from "./building.ts";

const answer_ms = 5000;

export function addHealthcheckCommand(program: Command, { services }: Building): void {
  program
    .command("healthcheck")
    .description("exit with 0 when the local server is ready, with 1 when it is not")
    .option("--url <url>", "the server to ask (default: the local one, by HOST and PORT)")
    .action(async ({ url }: { url?: string }, command: Command) => {
      const target = url === undefined ? localUrl(services.environment) : readyUrl(url);
      if (!target) command.error(`error: '${url}' is not a URL`);
      const health = await healthOf(target);
      if (!health.ready) throw new Refusal(health.says);
      services.terminal.out("ready\n");
    });
}

export interface Health {
  ready: boolean;
  /** Whether anything answered at all. */
  answered: boolean;
  says: string;
}

/** Asks /readyz; an address that nobody serves is an answer too. */
export async function healthOf(url: URL): Promise<Health> {
  try {
    const signal = AbortSignal.timeout(answer_ms);
    const response = await fetch(url, { proxy: false, redirect: "manual", signal });
    const body = (await response.text()).slice(0, 500);
    if (response.ok) return { ready: true, answered: true, says: "ready" };
    return { ready: false, answered: true, says: `not ready (${response.status}): ${reason(body)}` };
  } catch (cause) {
    const refused = cause instanceof Error && "code" in cause && noListener.has(String(cause.code));
    const isLate = cause instanceof Error && cause.name === "TimeoutError";
    const says = refused ? "nothing answers" : isLate ? `no answer within ${answer_ms / 1000} s` : "no answer in HTTP";
    return { ready: false, answered: !refused, says: `${says} at ${url.origin}` };
  }
}

const noListener = new Set(["ECONNREFUSED", "ConnectionRefused", "FailedToOpenSocket", "ENOTFOUND", "EHOSTUNREACH"]);

/** Where the local server listens, by the environment that it was started with. */
export function localUrl(environment: Readonly<Record<string, string | undefined>>): URL {
  const read = readEnvironment(environment);
  if ("problems" in read) throw new Refusal(read.problems.join("; "));
  const { host, port } = read.settings.server;
  if (port === 0) throw new Refusal("PORT is 0, so the server's port is not known here; name it with --url.");
  const name = ["0.0.0.0", "::"].includes(host) ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  return new URL(`http://${name}:${port}/readyz`);
}

/** The URL as given; without a path, its /readyz. */
function readyUrl(url: string): URL | null {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return null;
  const parsed = new URL(url);
  if (parsed.pathname === "/") parsed.pathname = "/readyz";
  return parsed;
}

/** What /readyz says is failing; else the head of whatever came. */
function reason(body: string): string {
  try {
    const { checks, error } = JSON.parse(body);
    if (typeof checks !== "object" || checks === null) return String(error?.message ?? body);
    return Object.entries(checks)
      .map(([name, says]) => `${name}: ${says}`)
      .join("; ");
  } catch {
    return body;
  }
}

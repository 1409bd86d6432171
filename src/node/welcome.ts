/**
 * The first start on the embedded database without a sluice.yaml creates a demo organization with a key, before anybody can be
 * served, and then prints a command that works. With a sluice.yaml it names the commands that make the first organization. A terminal shows the key; an output that may be kept (a pipe, a container's log) names the
 * file that has it.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Management } from "../admin/management/verbs.ts";
import { compact } from "../core/inference/compact.ts";
import type { Catalog } from "../core/routing/catalog.ts";

const demo_slug = "demo";
const demo_plan = "pro";
const demo_days = 30;

interface DemoSettings {
  manage: Management;
  catalog: Catalog;
  dataDir: string;
  now_ms: number;
  /** Whether only a person sees the output. */
  isTerminal: boolean;
}

export interface Demo {
  secret: string;
  /** The file in which the key is kept for its owner; null if it is printed. */
  file: string | null;
  expiresAt: string;
  /** The public id of a model that it may use. */
  model: string;
}

/** Creates the demo organization and its key. */
export async function createDemo(settings: DemoSettings): Promise<Demo> {
  const { manage, catalog, dataDir, now_ms, isTerminal } = settings;
  const plan = catalog.plans.has(demo_plan) ? demo_plan : [...catalog.plans.keys()][0];
  await manage.createOrganization({ slug: demo_slug, name: "Demo organization", ...compact({ plan }) });
  const expiresAt = new Date(now_ms + demo_days * 86_400_000).toISOString();
  const { key } = await manage.createKey({ organization: demo_slug, name: "demo", expiresAt });
  const secret = key!;
  const file = isTerminal ? null : keptIn(dataDir, secret);
  const [model = ""] = catalog.models.keys();
  return { secret, file, expiresAt, model };
}

/** The commands for somebody who has just set the service up. */
export const firstOrganizationText = `There is no organization yet. The first one, and its first key:

  sluice org create acme --plan pro
  sluice key create --org acme --name laptop

`;

/** A text that names the demo's key, and a command that uses it at `url`. */
export function welcomeText({ secret, file, expiresAt, model }: Demo, url: string): string {
  const until = `It expires on ${expiresAt.slice(0, 10)}.`;
  const created = file
    ? `Created a demo organization. Its API key is in a file that only you can read. ${until}`
    : `Created a demo organization. Its API key, which cannot be shown again. ${until}`;
  const key = file ? `$(cat '${file.replaceAll("'", "'\\''")}')` : secret;
  return `${created}

  ${file ?? secret}

Try it:

  curl ${url}/v1/chat/completions \\
    -H "authorization: Bearer ${key}" \\
    -H "content-type: application/json" \\
    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'

`;
}

/** A text with the link, for a terminal that only a person sees. */
export function consoleText(link: string): string {
  return `Open the console, signed in; the link works once, for ten minutes:

  ${link}

`;
}

/** A new file, so that neither a link nor somebody's earlier permissions apply. */
function keptIn(dataDir: string, secret: string): string {
  const file = join(dataDir, "demo-key");
  rmSync(file, { force: true });
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return file;
}

/** Reports whether this is a container: its terminal goes into its log as well. */
export function isContainer(environment: NodeJS.ProcessEnv): boolean {
  const marks = ["/.dockerenv", "/run/.containerenv"];
  return environment.KUBERNETES_SERVICE_HOST !== undefined || marks.some((mark) => existsSync(mark));
}

/**
 * At the first start with the embedded database and without a sluice.yaml, creates a demo organization with a key,
 * before the node serves, and then prints a command that works. With a sluice.yaml, prints the commands that create the
 * first organization. The key is printed on a terminal; an output that may be kept (a pipe, a container's log) gets the
 * name of the file with the key.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Management } from "../admin/management/verbs.ts";
import { compact } from "../core/protocol/json.ts";
import type { Catalog } from "../core/routing/catalog.ts";

const demo_slug = "demo";
const demo_plan = "pro";
const demo_days = 30;

interface DemoSettings {
  manage: Management;
  catalog: Catalog;
  dataDir: string;
  now_ms: number;
  /** Whether the output goes to a person's screen, where nothing keeps it. */
  isTerminal: boolean;
}

export interface Demo {
  secret: string;
  /** The file in which the key is stored for its owner; null if the key is printed. */
  file: string | null;
  expiresAt: string;
  /** The public id of a model that the key may use. */
  model: string;
}

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

/** The commands that create the first organization, after the service was configured. */
export const firstOrganizationText = `There is no organization yet. The first one, and its first key:

  sluice org create acme --plan pro
  sluice key create --org acme --name laptop

`;

/** The text that names the demo's key, and a command that uses it at `url`. */
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

/** The text with the link to the console, for a terminal that only a person sees. */
export function consoleText(link: string): string {
  return `Open the console, signed in; the link works once, for ten minutes:

  ${link}

`;
}

/**
 * Writes the secret into a new file. An existing file is deleted first: it might be a link to elsewhere, or readable by
 * others.
 */
function keptIn(dataDir: string, secret: string): string {
  const file = join(dataDir, "demo-key");
  rmSync(file, { force: true });
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return file;
}

/** Whether this is a container: what its terminal shows is also in its log. */
export function isContainer(environment: NodeJS.ProcessEnv): boolean {
  const marks = ["/.dockerenv", "/run/.containerenv"];
  return environment.KUBERNETES_SERVICE_HOST !== undefined || marks.some((mark) => existsSync(mark));
}

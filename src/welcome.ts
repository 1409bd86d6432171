/**
 * The first start on the embedded database: creates a demo organization, and tells its key and a command that works. A
 * terminal shows the key; what may be kept (a pipe, a container's log) tells the file that has it.
 */
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compact } from "./inference/compact.ts";
import type { Management } from "./management/management.ts";
import type { Catalog } from "./routing/catalog.ts";

const demo_slug = "demo";
const demo_plan = "pro";
const demo_days = 30;

export interface Welcome {
  manage: Management;
  url: string;
  catalog: Catalog;
  dataDir: string;
  now_ms: number;
  /** Whether only a person sees what is said. */
  isTerminal: boolean;
  say(text: string): void;
}

/** Does nothing if there is an organization already. */
export async function welcome({ manage, url, catalog, dataDir, now_ms, isTerminal, say }: Welcome): Promise<void> {
  if ((await manage.listOrganizations()).length > 0) return;
  const plan = catalog.plans.has(demo_plan) ? demo_plan : [...catalog.plans.keys()][0];
  await manage.createOrganization({ slug: demo_slug, name: "Demo organization", ...compact({ plan }) });
  const expires = new Date(now_ms + demo_days * 86_400_000).toISOString();
  const { secret } = await manage.createKey({ organization: demo_slug, name: "demo", expires });
  const model = [...catalog.models.keys()][0];
  const until = `It expires on ${expires.slice(0, 10)}.`;
  const file = isTerminal ? null : keptIn(dataDir, secret);
  const told = file
    ? [`Created a demo organization. Its API key is in a file that only you can read. ${until}`, ``, `  ${file}`]
    : [`Created a demo organization. Its API key, which cannot be shown again. ${until}`, ``, `  ${secret}`];
  say(
    [
      ...told,
      ``,
      `Try it:`,
      ``,
      `  curl ${url}/v1/chat/completions \\`,
      `    -H "authorization: Bearer ${file ? `$(cat '${file.replaceAll("'", "'\\''")}')` : secret}" \\`,
      `    -H "content-type: application/json" \\`,
      `    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
      ``,
      ``,
    ].join("\n"),
  );
}

/** A new file, so that no link and nobody's older rights count. */
function keptIn(dataDir: string, secret: string): string {
  const file = join(dataDir, "demo-key");
  rmSync(file, { force: true });
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return file;
}

/** What a container writes to its terminal goes into its log as well. */
export function isContainer(environment: NodeJS.ProcessEnv): boolean {
  const marks = ["/.dockerenv", "/run/.containerenv"];
  return environment.KUBERNETES_SERVICE_HOST !== undefined || marks.some((mark) => existsSync(mark));
}

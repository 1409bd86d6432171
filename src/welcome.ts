/** The first start on the embedded database: creates a demo organization, and prints its key and a command that works. */
import { compact } from "./inference/compact.ts";
import type { Management } from "./management/management.ts";
import type { Catalog } from "./routing/catalog.ts";

const demo_slug = "demo";
const demo_plan = "pro";

/** Does nothing if there is an organization already. */
export async function welcome(
  manage: Management,
  url: string,
  catalog: Catalog,
  say: (text: string) => void,
): Promise<void> {
  if ((await manage.listOrganizations()).length > 0) return;
  const plan = catalog.plans.has(demo_plan) ? demo_plan : [...catalog.plans.keys()][0];
  await manage.createOrganization({ slug: demo_slug, name: "Demo organization", ...compact({ plan }) });
  const made = await manage.createKey({ organization: demo_slug, name: "demo" });
  const model = [...catalog.models.keys()][0];
  say(
    [
      `Created a demo organization. Its API key, which cannot be shown again:`,
      ``,
      `  ${made.secret}`,
      ``,
      `Try it:`,
      ``,
      `  curl ${url}/v1/chat/completions \\`,
      `    -H "authorization: Bearer ${made.secret}" \\`,
      `    -H "content-type: application/json" \\`,
      `    -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
      ``,
      ``,
    ].join("\n"),
  );
}

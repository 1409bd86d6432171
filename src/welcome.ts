/** The first start on the embedded default: a demo organization, its key printed once, and a line that works as printed. */
import type { Management } from "./auth/administration.ts";
import type { Catalog } from "./routing/catalog.ts";

const demo_slug = "demo";
const demo_plan = "pro";

/** Does nothing where an organization exists already. */
export async function welcome(
  manage: Management,
  url: string,
  catalog: Catalog,
  say: (text: string) => void,
): Promise<void> {
  if ((await manage.listOrganizations()).length > 0) return;
  const plan = catalog.plans.has(demo_plan) ? demo_plan : [...catalog.plans.keys()][0];
  await manage.createOrganization({ slug: demo_slug, name: "Demo organization", plan });
  const made = await manage.createKey({ organization: demo_slug, name: "demo" });
  const model = [...catalog.models.keys()][0];
  say(
    [
      `A demo organization was created. Its API key, which cannot be shown again:`,
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

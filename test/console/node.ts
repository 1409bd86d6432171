// A node with a console, and something to see: two organizations, one of whose names are full of markup, and requests.
import { freePort } from "../harness/daemon.ts";
import { type Sluice, startSluice } from "../harness/sluice.ts";
import { until } from "../harness/until.ts";

export const markup = `<img src=x onerror=alert(1)>"'&lt;script>{{7*7}}`;

export interface ConsoleNode {
  sluice: Sluice;
  url: string;
  tokens: Record<"admin" | "viewer" | "organization-admin", string>;
}

export async function startConsoleNode(): Promise<ConsoleNode> {
  const port = await freePort();
  const sluice = await startSluice({ store: "pglite", env: { SLUICE_CONSOLE_PORT: String(port) } });
  const token = async (...words: string[]) =>
    (await sluice.json<{ token: string }>("operator", "create", ...words)).token;
  const tokens = {
    admin: await token("ann", "--role", "admin"),
    viewer: await token("vic", "--role", "viewer"),
    "organization-admin": await token("ola", "--role", "organization-admin", "--org", sluice.organization),
  };
  await sluice.json("org", "create", "marked", "--name", markup, "--plan", "pro");
  await sluice.json("team", "create", "--org", "marked", "--name", markup, "--limit", "week=1000000");
  await sluice.json("key", "create", "--org", "marked", "--name", markup);
  await requests(sluice);
  return { sluice, url: `http://127.0.0.1:${port}`, tokens };
}

const models = ["meta-llama/llama-3.1-8b-instruct", "qwen/qwen3-32b", "qwen/qwen3-coder"];

async function requests(sluice: Sluice): Promise<void> {
  const messages = [{ role: "user", content: "Hello" }];
  const asked = [...models, ...models].map((model) =>
    sluice.post("/v1/chat/completions", { model, max_tokens: 20, messages }).then((answer) => answer.text()),
  );
  await Promise.all(asked);
  await sluice.post("/v1/chat/completions", { model: "none/such", messages }).then((answer) => answer.text());
  await until(async () => (await sluice.json<unknown[]>("request", "list")).length >= models.length * 2);
}

/** The pages that somebody sees, and one of each thing. */
export async function pathsOf({ sluice }: ConsoleNode, role: string): Promise<string[]> {
  const [request] = await sluice.json<{ id: string }[]>("request", "list");
  const own = [
    "/usage",
    "/usage?by=model",
    "/requests",
    `/requests/${request!.id}`,
    `/organizations/${sluice.organization}`,
    "/audit",
    "/connect",
    "/nowhere",
  ];
  if (role === "organization-admin") return own;
  const all = ["/", "/organizations", "/organizations/marked", "/engines", "/nodes", "/plans", "/plans/pro", "/people"];
  return [...all, "/operators", ...own];
}

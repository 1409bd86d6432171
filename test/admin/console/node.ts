// Starts a node with a console and an issuer, and with data for the pages: two organizations, one of which has names
// full of HTML markup; people and operators of every role; and requests.
import { signInByIssuer } from "../../harness/console-session.ts";
import { type PeopleNode, startPeopleNode } from "../../harness/people-node.ts";
import { until } from "../../harness/until.ts";
import type { Tab } from "./chromium.ts";

export const markup = `<img src=x onerror=alert(1)>"'&lt;script>{{7*7}}`;

type OperatorRole = "admin" | "viewer" | "organization-admin";

export interface ConsoleNode extends PeopleNode {
  url: string;
  /** The slugs of the two organizations. The people are in the first one. */
  organizations: readonly [string, ...string[]];
  tokens: Record<OperatorRole, string>;
  /** The people who sign in by the issuer, each with a key and a request of her own. */
  people: Record<"member" | "lead", Person>;
}

interface Person {
  account: string;
  id: string;
  request: string;
  /** The ID of the person's request for a higher limit of her own key. */
  limitRequest: string;
}

/**
 * The roles of users who can sign in: operators sign in by their token, a member and an organization's administrator by
 * the issuer.
 */
export const roles = ["admin", "viewer", "organization-admin", "member", "lead"] as const;
export type Role = (typeof roles)[number];

export async function startConsoleNode(): Promise<ConsoleNode> {
  const node = await startPeopleNode();
  const { sluice } = node;
  const token = async (...words: string[]) =>
    (await sluice.json<{ token: string }>("operator", "create", ...words)).token;
  const tokens = {
    admin: await token("ann", "--role", "admin"),
    viewer: await token("vic", "--role", "viewer"),
    "organization-admin": await token("ola", "--role", "organization-admin", "--org", sluice.organization),
  };
  await sluice.json("team", "create", "--org", sluice.organization, "--name", "research", "--limit", "month=50");
  await sluice.json("org", "create", "marked", "--name", markup, "--plan", "pro");
  await sluice.json("team", "create", "--org", "marked", "--name", markup, "--limit", "week=0.001");
  const named = ["--org", "marked", "--name", markup, "--owner", markup, "--label", `stage=${markup}`];
  await sluice.json("key", "create", ...named);
  await sluice.json("notice", "set", sluice.organization, "--url", "https://hooks.example.com/sluice");
  await requests(node);
  const people = {
    member: await person(node, { account: "mia", name: markup, groups: ["research", markup] }),
    lead: await person(node, { account: "oda", name: "Oda Lead", groups: ["leads"] }),
  };
  return { ...node, url: node.consoleUrl, organizations: [sluice.organization, "marked"], tokens, people };
}

export async function signInAs(tab: Tab, node: ConsoleNode, role: Role): Promise<Tab> {
  if (role === "member" || role === "lead") {
    node.provider.account = node.people[role].account;
    await tab.signInBy(node.provider);
  } else await tab.signIn(node.tokens[role]);
  return tab;
}

const models = ["meta-llama/llama-3.1-8b-instruct", "qwen/qwen3-32b", "qwen/qwen3-coder"];
const messages = [{ role: "user", content: "Hello" }];

async function requests({ sluice }: PeopleNode): Promise<void> {
  const asked = [...models, ...models].map((model) =>
    sluice.post("/v1/chat/completions", { model, max_tokens: 20, messages }).then((answer) => answer.text()),
  );
  await Promise.all(asked);
  await sluice.post("/v1/chat/completions", { model: "none/such", messages }).then((answer) => answer.text());
  await until(async () => (await sluice.json<unknown[]>("request", "list")).length >= models.length * 2);
}

interface Newcomer {
  account: string;
  name: string;
  groups: string[];
}

type SignedIn = Pick<Awaited<ReturnType<typeof signInByIssuer>>, "manage">;

/** Sends a request for a higher limit, and returns its ID. */
export async function askForMore({ manage }: SignedIn, asked: object): Promise<string> {
  const more = await manage("/limit-requests", { method: "POST", body: { ...asked, message: markup } });
  return more.body!.id as string;
}

/** Signs a person in for the first time, and creates a key, a request and a limit request of hers. */
async function person(node: PeopleNode, { account, name, groups }: Newcomer) {
  const { sluice } = node;
  const claims = { name, groups, email: `${account}@example.com`, email_verified: true };
  const { call, manage } = await signInByIssuer(node, account, claims);
  const id = (await call("/session")).body!.id as string;
  const named = ["--org", sluice.organization, "--name", `${account}'s laptop`, "--person", id];
  const created = await sluice.json<{ id: string; key: string }>("key", "create", ...named, "--limit", "week=0.0005");
  const { id: keyId, key } = created;
  const answer = await sluice.post("/v1/chat/completions", { model: models[0], max_tokens: 20, messages }, { key });
  await answer.text();
  const limitRequest = await askForMore({ manage }, { limit: "week", of: "key", key: keyId });
  return { account, id, request: answer.headers.get("x-service-request-id")!, limitRequest };
}

/** The final path segments of an organization's pages. */
const organizationParts = [
  "",
  ...["limits", "teams", "people", "keys", "requests", "asked", "notices", "audit", "settings"].map(
    (part) => `/${part}`,
  ),
];

/** The paths of the pages that a role sees, with one page of each kind of object. */
export async function pathsOf({ sluice, people, organizations }: ConsoleNode, role: Role): Promise<string[]> {
  const [organization, ...others] = organizations;
  const [request] = await sluice.json<{ id: string }[]>("request", "list", "--org", organization);
  const own = ["/usage", "/usage?by=model", "/requests", "/models", `/models/${models[0]}`, "/connect", "/nowhere"];
  const [hers] = await sluice.json<{ id: string }[]>("key", "list", "--person", people.member.id);
  const limitRequest = `/limit-requests/${people.member.limitRequest}`;
  if (role === "member")
    return ["/you", ...own, `/requests/${people.member.request}`, `/keys/${hers!.id}`, limitRequest];
  const ofOrganization = (slug: string) => organizationParts.map((part) => `/organizations/${slug}${part}`);
  const [team] = await sluice.json<{ id: string }[]>("team", "list", "--org", organization);
  const things = [
    ...["", "/members", "/keys", "/requests", "/audit"].map((part) => `/teams/${team!.id}${part}`),
    ...["", "/keys", "/requests", "/audit"].map((part) => `/people/${people.member.id}${part}`),
    ...["", "/requests", "/audit"].map((part) => `/keys/${hers!.id}${part}`),
  ];
  const inside = [...own, `/requests/${request!.id}`, ...ofOrganization(organization), ...things];
  const managed = [...inside, limitRequest, "/audit", "/people", "/teams", "/keys"];
  if (role === "lead") return ["/you", ...managed];
  if (role === "organization-admin") return managed;
  const machines = ["/engines", "/engines/simulator", "/nodes", "/plans", "/plans/pro"];
  const all = ["/", "/organizations", ...others.flatMap(ofOrganization), ...machines];
  return [...all, "/operators", "/notices", ...managed];
}

// Starts Keycloak with a realm of its own, which is set up by Keycloak's administration API.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort, serviceFolder, startDaemon } from "../../harness/daemon.ts";
import { answers } from "./dex.ts";
import { type Addresses, clientSecret, consented, mailOf, password, type RealIssuer, recipe, staff } from "./issuer.ts";

const administrator = { username: "admin", password: "a-password-of-the-administrator" };
/** The first start takes minutes on a busy machine, because Keycloak compiles its configuration. */
const start_ms = 8 * 60_000;

interface Tokens {
  access_token: string;
  id_token: string;
}

export interface Keycloak extends RealIssuer {
  /** Ends all sessions of the person at Keycloak, as an administrator does. */
  endSessions(name: string): Promise<void>;
  /**
   * The token that a person gets through another client of the realm: `tool`, whose tokens have the audience of Sluice,
   * or `other`, whose tokens do not.
   */
  tokenOf(name: string, kind?: "access_token" | "id_token", client?: "tool" | "other"): Promise<string>;
  /** The access token that a job gets with its client's own credentials. */
  jobToken(): Promise<string>;
}

export async function startKeycloak(home: string, addresses: Addresses): Promise<Keycloak> {
  const [port, management] = [await freePort(), await freePort()];
  const base = `http://127.0.0.1:${port}`;
  const issuer = `${base}/realms/staff`;
  const how = { ...addresses, issuer };
  const folder = serviceFolder("keycloak");
  const java = join(folder, "java");
  // The wrapper makes the kernel kill Java when Keycloak's start script ends; otherwise Java would outlive the script.
  writeFileSync(java, '#!/bin/sh\nexec setpriv --pdeathsig KILL java "$@"\n', { mode: 0o755 });
  const daemon = await startDaemon({
    name: "keycloak",
    command: [
      ...["sh", `${home}/bin/kc.sh`, "start-dev", "--db=dev-mem", "--http-host=127.0.0.1", `--http-port=${port}`],
      `--http-management-port=${management}`,
    ],
    environment: {
      JAVA: java,
      KC_BOOTSTRAP_ADMIN_USERNAME: administrator.username,
      KC_BOOTSTRAP_ADMIN_PASSWORD: administrator.password,
    },
    folder,
    ready: () => answers(`${base}/realms/master/.well-known/openid-configuration`),
    deadline_ms: start_ms,
  });

  const granted = async (realm: string, form: Record<string, string>) => {
    const url = `${base}/realms/${realm}/protocol/openid-connect/token`;
    const answer = await fetch(url, { method: "POST", body: new URLSearchParams(form) });
    const body = (await answer.json()) as Tokens;
    if (!body.access_token) throw new Error(`Keycloak gave no token: ${JSON.stringify(body)}`);
    return body;
  };
  /** Calls Keycloak's administration API. Each call gets a new token, because a token lasts only a minute. */
  const administer = async <Answer>(method: string, path: string, body?: unknown): Promise<Answer> => {
    const form = { grant_type: "password", client_id: "admin-cli", ...administrator };
    const { access_token: token } = await granted("master", form);
    const answer = await fetch(`${base}/admin/realms${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`Keycloak answered ${answer.status} to ${method} ${path}: ${text}`);
    return (text === "" ? null : JSON.parse(text)) as Answer;
  };
  const named = async (kind: "users" | "groups", name: string) => {
    const found = await administer<{ id: string; username?: string; name?: string }[]>("GET", `/staff/${kind}`);
    return found.find((one) => (one.username ?? one.name) === name)!.id;
  };
  await administer("POST", "", realmOf(recipe("Keycloak", "clientId", how)));

  return {
    issuer,
    lines: `${recipe("Keycloak", "client_id:", how)}      audiences: [sluice-api]\n`,
    async signIn(page, name) {
      await page.fill("#username", name);
      await page.fill("#password", password);
      await page.click("#kc-login");
      await consented(page, page.locator("#kc-login[name=accept]"), base);
    },
    async signOut(page) {
      await consented(page, page.locator("#kc-logout"), base);
    },
    async setGroups(name, groups) {
      const user = await named("users", name);
      const before = await administer<{ id: string }[]>("GET", `/staff/users/${user}/groups`);
      for (const { id } of before) await administer("DELETE", `/staff/users/${user}/groups/${id}`);
      for (const group of groups)
        await administer("PUT", `/staff/users/${user}/groups/${await named("groups", group)}`);
    },
    disable: async (name) => administer("PUT", `/staff/users/${await named("users", name)}`, { enabled: false }),
    endSessions: async (name) => administer("POST", `/staff/users/${await named("users", name)}/logout`),
    async tokenOf(name, kind = "access_token", client_id = "tool") {
      const form = { grant_type: "password", client_id, username: name, password, scope: "openid" };
      return (await granted("staff", form))[kind];
    },
    async jobToken() {
      const form = { grant_type: "client_credentials", client_id: "batch", client_secret: clientSecret };
      return (await granted("staff", form)).access_token;
    },
    [Symbol.asyncDispose]: () => daemon.stop(),
  };
}

/** The realm's definition with four clients: that of the recipe, two tools for people, and a job. */
function realmOf(client: string): object {
  const groups = { protocol: "openid-connect", name: "groups", protocolMapper: "oidc-group-membership-mapper" };
  const protocolMappers = [
    {
      ...groups,
      config: { "claim.name": "groups", "full.path": "false", "access.token.claim": "true" },
    },
    {
      ...{ protocol: "openid-connect", name: "sluice-api", protocolMapper: "oidc-audience-mapper" },
      config: { "included.custom.audience": "sluice-api", "access.token.claim": "true" },
    },
  ];
  const users = Object.entries(staff).map(([name, of]) => ({
    ...{ username: name, firstName: name, lastName: "Example", enabled: true, groups: of },
    // This role is given explicitly, because Keycloak gives it automatically only to users who are not imported. It
    // contains `offline_access`.
    ...{ email: mailOf(name), emailVerified: true, realmRoles: ["default-roles-staff"] },
    credentials: [{ type: "password", value: password, temporary: false }],
  }));
  return {
    realm: "staff",
    enabled: true,
    ssoSessionIdleTimeout: 12 * 3600,
    groups: ["research", "platform", "product"].map((name) => ({ name })),
    users,
    clients: [
      { ...(JSON.parse(client) as object), secret: clientSecret },
      { clientId: "tool", publicClient: true, directAccessGrantsEnabled: true, protocolMappers },
      { clientId: "other", publicClient: true, directAccessGrantsEnabled: true },
      { clientId: "batch", secret: clientSecret, serviceAccountsEnabled: true, protocolMappers },
    ],
  };
}

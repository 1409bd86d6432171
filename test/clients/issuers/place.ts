// Starts a node on Postgres with a real identity provider as its issuer, and a real browser to use both.

import postgres from "postgres";
import { launchBrowser, openTab, type Tab } from "../../admin/console/chromium.ts";
import { freePort } from "../../harness/daemon.ts";
import { type Laptop, laptop, type Typed } from "../../harness/laptop.ts";
import { secretKey } from "../../harness/people-node.ts";
import { freshDatabase } from "../../harness/services.ts";
import { type Sluice, startSluice } from "../../harness/sluice.ts";
import { type Addresses, clientSecret, type RealIssuer } from "./issuer.ts";

export interface Place<Issuer extends RealIssuer> extends Addresses, AsyncDisposable {
  sluice: Sluice;
  issuer: Issuer;
  /** Opens a browser tab of a person who is not signed in anywhere. */
  newTab(): Promise<Tab>;
  /** Changes each session as if it was last confirmed with the issuer an hour earlier. */
  hourLater(): Promise<void>;
}

const rules = `
  rules:
    - { claim: groups, has: platform, role: admin }
    - { claim: groups, has: research, organization: acme, role: member }
    - { claim: groups, has: product, organization: shop, role: member }
    - { claim: azp, is: batch, organization: acme, role: member, kind: service, scopes: [models:read] }
`;

export async function startPlace<Issuer extends RealIssuer>(
  start: (addresses: Addresses) => Promise<Issuer>,
): Promise<Place<Issuer>> {
  const [port, consolePort] = [await freePort(), await freePort()];
  const addresses = { serviceUrl: `http://127.0.0.1:${port}`, consoleUrl: `http://127.0.0.1:${consolePort}` };
  const [database, issuer, browser] = await Promise.all([freshDatabase(), start(addresses), launchBrowser()]);
  const config = `identity:
  service_url: ${addresses.serviceUrl}
  console_url: ${addresses.consoleUrl}
  issuers:
${issuer.lines}${rules}`;
  const sluice = await startSluice({
    ...{ store: "pglite", dataDir: "unused", config, secrets: [clientSecret] },
    env: {
      DATABASE_URL: database.url,
      PORT: `${port}`,
      SLUICE_CONSOLE_PORT: `${consolePort}`,
      SLUICE_SECRET_KEY: secretKey,
      OIDC_CLIENT_SECRET: clientSecret,
    },
  });
  for (const name of ["acme", "shop"]) await sluice.json("org", "create", name, "--plan", "unlimited");
  return {
    ...addresses,
    sluice,
    issuer,
    newTab: () => openTab(addresses.consoleUrl, { theme: "light", width: 1440 }, browser),
    async hourLater() {
      const sql = postgres(database.url, { max: 1 });
      await sql`update browser_session set confirmed_at = confirmed_at - interval '1 hour'`;
      await sql.end();
    },
    async [Symbol.asyncDispose]() {
      await browser.close();
      await sluice.stop();
      await issuer[Symbol.asyncDispose]();
      await database.drop();
    },
  };
}

type AnyPlace = Place<RealIssuer>;

/** Signs a person in: follows the console's link to the provider's page, and returns to the console. */
export async function signIn({ issuer, consoleUrl }: AnyPlace, tab: Tab, name: string): Promise<void> {
  tab.leaveFor(issuer);
  await tab.page.goto(`${consoleUrl}/`);
  await tab.page.getByRole("link", { name: /^Sign in with / }).click();
  await issuer.signIn(tab.page, name);
  await tab.page.waitForURL((url) => url.origin === consoleUrl);
}

export interface Device extends Disposable {
  home: Laptop;
  login: Typed;
}

/** Runs `sluice login` on another machine; the person approves it in a browser. */
export async function signInDevice(place: AnyPlace, name: string): Promise<Device> {
  const home = laptop();
  const login = await home.signInBy(place.serviceUrl, async (code) => {
    const { page, context } = await place.newTab();
    await page.goto(`${place.serviceUrl}/device?user_code=${code}`);
    await place.issuer.signIn(page, name);
    await page.getByRole("button", { name: "Continue" }).click();
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByRole("heading", { name: "Approved" }).waitFor();
    await context.close();
  });
  return { home, login, [Symbol.dispose]: () => home[Symbol.dispose]() };
}

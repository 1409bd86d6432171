// The interface of a real identity provider with some users, set up as its recipe in docs/identity.md says.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";

/** The URLs at which browsers and the provider reach Sluice. */
export interface Addresses {
  serviceUrl: string;
  consoleUrl: string;
}

export interface RealIssuer extends AsyncDisposable {
  /** The issuer's identifier, as in its discovery document. */
  issuer: string;
  /** The YAML lines for the issuer under `issuers` in sluice.yaml. */
  lines: string;
  /** Fills in the provider's sign-in page, and consents if asked. */
  signIn(page: Page, name: string): Promise<void>;
  /** Confirms on the provider's sign-out page that the session there ends, too. */
  signOut(page: Page): Promise<void>;
  setGroups(name: string, groups: string[]): Promise<void>;
  /** Disables the account with this name, so that it can no longer sign in. */
  disable(name: string): Promise<void>;
}

/** The users of the provider, with the groups that each has at the start. All have the same password. */
export const staff: Readonly<Record<string, readonly string[]>> = Object.freeze({
  ann: ["research"],
  mia: ["research"],
  leo: ["research"],
  sid: ["research"],
  nia: ["research"],
  pat: ["platform"],
  eve: [],
});
export const password = "a-password-of-everybody";
export const clientSecret = "the-secret-of-the-client-sluice";
export const mailOf = (name: string) => `${name}@example.com`;

/**
 * The code block of a recipe in docs/identity.md that contains this word, with the addresses of the test in place of
 * those on the page.
 */
export function recipe(provider: string, word: string, how: Addresses & { issuer: string }): string {
  const page = readFileSync(join(process.cwd(), "docs/identity.md"), "utf8");
  const [, text = ""] = page.split(`\n**${provider}.** `);
  const [own = ""] = text.split(/\n\*\*[A-Z]|\n## /);
  const blocks = [...own.matchAll(/^```\w+\n(.*?)^```$/gms)].map(([, body]) => body!);
  const block = blocks.find((body) => body.includes(word));
  if (block === undefined) throw new Error(`the recipe of ${provider} has no block with ${word}`);
  return block
    .replaceAll("https://console.sluice.example", how.consoleUrl)
    .replaceAll("https://sluice.example", how.serviceUrl)
    .replaceAll(/https:\/\/(login|dex)\.example(\/\w+)*/g, how.issuer);
}

/** Waits until the browser has left the provider's pages. If the provider asks for consent first, gives it. */
export async function consented(page: Page, button: Locator, provider: string): Promise<void> {
  const left = page.waitForURL((url) => !url.href.startsWith(`${provider}/`));
  const asked = button.waitFor().then(() => button.click());
  // The browser leaves the provider, or the provider asks for consent, whichever happens first. If it never asks, the
  // wait for its button fails later; that error is ignored.
  asked.catch(() => {});
  await Promise.race([left, asked]);
  await left;
}

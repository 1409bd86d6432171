// A real identity provider with some people, set up as its recipe in docs/identity.md says.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";

/** Where browsers and the provider reach Sluice. */
export interface Addresses {
  serviceUrl: string;
  consoleUrl: string;
}

export interface RealIssuer extends AsyncDisposable {
  /** Its name, as in its discovery document. */
  issuer: string;
  /** What stands under `issuers` in sluice.yaml. */
  lines: string;
  /** Fills in the page to which a sign-in leads, and consents where that is asked. */
  signIn(page: Page, name: string): Promise<void>;
  /** On the page to which a sign-out leads, says yes to leaving the provider, too. */
  signOut(page: Page): Promise<void>;
  setGroups(name: string, groups: string[]): Promise<void>;
  /** Lets nobody of this name in any more. */
  disable(name: string): Promise<void>;
}

/** The groups with which everybody begins. The password of each is the same. */
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

/** The block of a recipe in docs/identity.md that has this word, with the suite's addresses in the place of the page's. */
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

/** Waits until the browser has left the provider; where it asks for consent first, gives it. */
export async function consented(page: Page, button: Locator, provider: string): Promise<void> {
  const left = page.waitForURL((url) => !url.href.startsWith(`${provider}/`));
  const asked = button.waitFor().then(() => button.click());
  // The page that is left first decides; the other wait ends with it.
  asked.catch(() => {});
  await Promise.race([left, asked]);
  await left;
}

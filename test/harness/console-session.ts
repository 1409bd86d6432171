// Signs people and operators in to the console's API, without a real browser.
import { Browser, type Call } from "./browser.ts";
import type { PeopleNode } from "./people-node.ts";

/**
 * Signs a person in by the issuer, which then says these claims of the account. `secret` is null if the person was not
 * let in.
 */
export async function signInByIssuer(
  { provider, consoleUrl }: Pick<PeopleNode, "provider" | "consoleUrl">,
  account: string,
  claims?: object,
) {
  provider.account = account;
  if (claims) provider.claims.set(account, { name: account, ...claims });
  const browser = new Browser();
  const page = await browser.visit(`${consoleUrl}/sign-in`);
  const secret = page.url.hash === "" ? null : await browser.redeem(page);
  return { secret, ...callsOf(browser, page, secret) };
}

export async function signInByToken(consoleUrl: string, token: string, browser = new Browser()) {
  const page = { url: new URL(consoleUrl) };
  const { status, code, body } = await browser.call(page, "/session/operator", { method: "POST", body: { token } });
  const secret = body?.secret as string;
  return { status, code, secret, ...callsOf(browser, page, secret) };
}

function callsOf(browser: Browser, page: { url: URL }, secret: string | null) {
  const call = (path: string, asked: Call = {}) => browser.call(page, path, { ...(secret && { secret }), ...asked });
  /** Calls a path of the management interface. */
  const manage = (path: string, asked?: Call) => call(`/management/v1${path}`, asked);
  return { browser, call, manage };
}

/** `sluice login`, `logout` and `token`: signing in at a server, from any machine that reaches it. */
import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { isKey } from "../../../core/auth/credential.ts";
import { shellWord } from "../../management/shell-word.ts";
import { type JsonFlag, jsonOption, missing, printAnswer } from "../option.ts";
import { safeUrl } from "../safe-url.ts";
import type { CommandContext, Services } from "../services.ts";
import { oneLine } from "../terminal.ts";
import { accessToGive, chosenServer, tokensOf } from "./access.ts";
import { openedInBrowser } from "./browser.ts";
import { type KeptSignIn, type KeptSignIns, keptSignIns, secretOf } from "./kept.ts";
import type { KeyStore } from "./key-store.ts";
import { forgotten, hidden, revealed, type StoreName, storeFor, storeNames } from "./secrets.ts";
import {
  type DeviceCodes,
  deviceCodes,
  endpointsAt,
  requireKnownKey,
  revokedAt,
  ServerAway,
  tokensFor,
} from "./service.ts";

interface LoginOptions extends JsonFlag {
  key?: true;
  store?: StoreName;
  browser: boolean;
}

const whichServer =
  "the server: sluice login https://sluice.example. The page of that address, and Connect in the console, show the command";
const url_chars_max = 200;
const key_bytes_max = 4096;

export function addSignInCommands(program: Command, { services }: CommandContext): void {
  const { terminal } = services;
  program
    .command("login")
    .description("sign in to a server, with a browser on any machine; or store a key for it")
    .argument("[url]", "what clients call: https://sluice.example (default: where you signed in last)")
    .option("--key", "keep a key instead, from SLUICE_KEY or standard input")
    .option("--no-browser", "print the address to open, and open nothing")
    .addOption(new Option("--store <place>", "where to keep the refresh token or key").choices(storeNames))
    .addOption(jsonOption())
    .addHelpText("after", loginHelp)
    .action(async (typed: string | undefined, options: LoginOptions, command: Command) => {
      const kept = keptSignIns(services);
      const url = typed === undefined ? (kept.last() ?? missing(command, whichServer)) : serverAt(typed);
      const store = await storeFor(services, options.store);
      const signIn = options.key ? await byKey(services, url) : await byDevice(services, url, options.browser);
      await kept.locked(url, async () => {
        const before = readable(kept, url);
        kept.write(url, store ? await withoutSecret(services, store, url, signIn) : signIn);
        if (before) await forgotten(services, url, secretOf(before));
      });
      kept.setCurrent(url);
      const email = signIn.kind === "person" ? signIn.email : null;
      const words =
        signIn.kind === "key"
          ? `Kept the key for ${url}.`
          : `Signed in at ${url}${email ? ` as ${oneLine(email)}` : ""}.`;
      const where = store ? ` Its secret is in ${store.name}.` : "";
      const answer = { url, kind: signIn.kind, email, store: store ? "system" : "file" };
      printAnswer(terminal, options, answer, `${words}${where}\n`);
    });

  program
    .command("logout")
    .description("sign out of a server, and delete the sign-in here")
    .argument("[url]", "the server (default: where you signed in last)")
    .addOption(jsonOption())
    .action(async (typed: string | undefined, options: JsonFlag) => {
      const kept = keptSignIns(services);
      const url = chosenServer(kept, typed === undefined ? undefined : serverAt(typed));
      const signIn = await kept.locked(url, async () => {
        const found = kept.read(url);
        kept.remove(url);
        return found;
      });
      if (!signIn) throw new Error(`You are not signed in at ${url}.`);
      const secret = secretOf(signIn);
      // If the key store is locked, the refresh token cannot be read. The access token is revoked instead: revoking
      // either ends the sign-in.
      const lasting = secret === null ? null : await revealed(services, url, secret).catch(() => null);
      await forgotten(services, url, secret);
      if (signIn.kind === "person") await revokedThere(url, lasting ?? signIn.access_token);
      const words =
        signIn.kind === "key" ? `Removed the key for ${url} here; it stays valid.\n` : `Signed out at ${url}.\n`;
      printAnswer(terminal, options, { url, kind: signIn.kind }, words);
    });

  program
    .command("token")
    .description("print an access token for a server, renewed if needed, or the stored key")
    .argument("[url]", "the server (default: where you signed in last)")
    .addHelpText("after", tokenHelp)
    .action(async (typed: string | undefined) => {
      const { secret } = await accessToGive(services, typed === undefined ? undefined : serverAt(typed));
      terminal.out(`${secret}\n`);
    });
}

/** The URL under which a sign-in is stored: without a trailing slash, and without the `/v1` that SDKs need. */
export function serverAt(typed: string): string {
  const { origin, pathname } = safeUrl(typed, "your token");
  const url = origin + pathname.replace(/\/+$/, "").replace(/\/v1$/, "");
  if (url.length > url_chars_max) throw new Error(`A server's URL has at most ${url_chars_max} characters.`);
  return url;
}

/** The sign-in at this server. Null: there is none, or its file is damaged. */
function readable(kept: KeptSignIns, url: string): KeptSignIn | null {
  try {
    return kept.read(url);
  } catch {
    return null;
  }
}

/** The sign-in as its file has it after its secret has been moved to the key store. */
async function withoutSecret(
  services: Services,
  store: KeyStore,
  url: string,
  signIn: KeptSignIn,
): Promise<KeptSignIn> {
  const secret = secretOf(signIn);
  if (typeof secret !== "string") return signIn;
  const kept = await hidden(store, services.newUuid(), url, secret);
  return signIn.kind === "key" ? { ...signIn, key: kept } : { ...signIn, refresh_token: kept };
}

async function byKey({ environment }: Services, url: string): Promise<KeptSignIn> {
  const key = (environment.SLUICE_KEY ?? keyOnInput()).trim();
  if (!isKey(key) || !key.startsWith("slk_"))
    throw new Error("This is no key: a key begins with 'slk_', and has to be whole.");
  await requireKnownKey(url, key);
  return { kind: "key", key };
}

/** Reads the key from standard input. Refuses a terminal, which would show the typed key. */
function keyOnInput(): string {
  if (process.stdin.isTTY) throw new Error("Set SLUICE_KEY, or pipe the key in: sluice login URL --key <key-file");
  return readFileSync(0).subarray(0, key_bytes_max).toString("utf8");
}

async function byDevice(services: Services, url: string, hasBrowser: boolean): Promise<KeptSignIn> {
  const { terminal, now_ms } = services;
  const endpoints = await endpointsAt(url);
  const codes = await deviceCodes(url, endpoints);
  const minutes = Math.floor(codes.expires_in / 60);
  const page = pageOf(codes);
  const opens = hasBrowser && openedInBrowser(services, page) ? "It opens in your browser. " : "";
  // Instructions go to standard error, because standard output is for the result.
  terminal.err(
    `Open  ${oneLine(page)}\nCode  ${oneLine(codes.user_code)}\n\n${opens}Waiting for your approval, for ${minutes} minutes. Approve only this code.\n`,
  );
  const until_ms = now_ms() + codes.expires_in * 1000;
  let interval_s = codes.interval ?? 5;
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  while (now_ms() < until_ms) {
    await Bun.sleep(interval_s * 1000);
    const answer = await tokensFor(url, endpoints, { grant_type, device_code: codes.device_code }).catch(whileAway);
    if (!("error" in answer)) return tokensOf(services, answer);
    if (answer.error === "slow_down") interval_s += 5;
    else if (answer.error !== "authorization_pending") throw new Error(answer.description);
  }
  throw new Error(`Nobody approved the code in time. Run again: sluice login ${shellWord(url)}`);
}

/** The URL of the approval page. It includes the code if the server sent such a link to the same page. */
function pageOf({ verification_uri, verification_uri_complete = verification_uri }: DeviceCodes): string {
  const [page, complete] = [new URL(verification_uri), URL.parse(verification_uri_complete)];
  return complete?.origin === page.origin && complete.pathname === page.pathname ? complete.href : page.href;
}

/** Treats an unreachable server as a pending approval: the approval is not lost meanwhile. */
function whileAway(thrown: unknown) {
  if (!(thrown instanceof ServerAway)) throw thrown;
  return { error: "authorization_pending", description: "" };
}

/**
 * Revokes the token at the server. The sign-in is already deleted here, so an error must say that the sign-in is still
 * valid at the server.
 */
async function revokedThere(url: string, token: string): Promise<void> {
  await revokedAt(url, token).catch((cause) => {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(
      `Signed out here, but ${url} did not get the message, and this sign-in goes on there: ${why} Ask your administrator to end it.`,
      { cause },
    );
  });
}

const loginHelp = `
The sign-in is kept in ~/.config/sluice/sign-ins (or in $XDG_CONFIG_HOME), in a
file that only you can read. Where the system has a key store that works
(Keychain on macOS; on Linux a Secret Service, by secret-tool), the refresh
token or the key is kept there, and the file has only the access token of an
hour. --store file or system, or SLUICE_TOKEN_STORE, chooses. You can sign in at
several servers.

In a terminal on a desktop, the page opens in the browser with the code filled
in. Compare it with the code here, and approve it. Elsewhere, open the address
on any machine. The server is remembered: later, sluice login alone signs in
there again.

Examples:
  $ sluice login https://sluice.example
  $ sluice login https://sluice.example --key <key-file`;

const tokenHelp = `
Scripts, and agents that run a command for their token, use it so:
curl -H "Authorization: Bearer $(sluice token)" https://sluice.example/v1/models

Examples:
  $ sluice token
  $ sluice token https://sluice.example`;

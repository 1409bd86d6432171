/**
 * The stored sign-ins of this user: one file for each server in `$XDG_CONFIG_HOME/sluice/sign-ins`, which only the user
 * may read. The lasting secret may be in the system's key store instead. Each file has a lock, so that one of several
 * processes refreshes the token and the others read its result.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "../../management/shell-word.ts";
import { codeOf } from "../calling.ts";
import type { Services } from "../services.ts";
import { writeWhole } from "../write-whole.ts";
import { isInSystem, type KeptSecret } from "./secrets.ts";

export interface KeptTokens {
  kind: "person";
  /** The user's e-mail address, if the server sends it. */
  email: string | null;
  access_token: string;
  /** The refresh token; null: the sign-in ends when the access token expires. */
  refresh_token: KeptSecret | null;
  /** The time from which on the access token is renewed, by this machine's clock. */
  renew_at_ms: number;
  ends_at_ms: number;
}

export type KeptSignIn = KeptTokens | { kind: "key"; key: KeptSecret };

/** The lasting secret: the key or the refresh token. Null: the sign-in ends when the access token expires. */
export const secretOf = (signIn: KeptSignIn) => (signIn.kind === "key" ? signIn.key : signIn.refresh_token);

export interface KeptSignIns {
  read(url: string): KeptSignIn | null;
  write(url: string, signIn: KeptSignIn): void;
  /** Deletes the sign-in. Returns false if there was none. */
  remove(url: string): boolean;
  /**
   * The server of the newest sign-in. If that sign-in has ended: the server of the only remaining sign-in; null if
   * there is not exactly one.
   */
  current(): string | null;
  /** The server of the newest sign-in, even if that sign-in has ended; null: there was no sign-in. */
  last(): string | null;
  setCurrent(url: string): void;
  /** Records that the access token was given to a caller now. */
  noteGiven(url: string): void;
  /** True if the token was given so recently that an agent would ask again only because the server refused it. */
  givenLately(url: string): boolean;
  /** Runs `work` under the lock of this server's sign-in, which one process on this machine can have at a time. */
  locked<Result>(url: string, work: () => Promise<Result>): Promise<Result>;
}

/** A lock older than this belongs to a process that was killed: no work under a lock takes so long. */
const stale_ms = 100_000;
const poll_ms = 20;
/** Slightly less than the five minutes after which agents request the next token while the current one works. */
const lately_ms = 290_000;

export function keptSignIns({ environment, newUuid, now_ms }: Services): KeptSignIns {
  const folder = join(configurationFolder(environment), "sluice", "sign-ins");
  const fileOf = (url: string) => join(folder, `${encodeURIComponent(url)}.json`);
  const currentFile = join(folder, "current");
  const last = () => unlessMissing(() => readFileSync(currentFile, "utf8"))?.trim() ?? null;
  const made = () => mkdirSync(folder, { recursive: true, mode: 0o700 });
  const all = () =>
    (unlessMissing(() => readdirSync(folder)) ?? [])
      .filter((name) => name.endsWith(".json"))
      .map((name) => decodeURIComponent(name.slice(0, -".json".length)));

  return {
    read(url) {
      const text = unlessMissing(() => readFileSync(fileOf(url), "utf8"));
      return text === null ? null : signInIn(text, fileOf(url), url);
    },
    write(url, signIn) {
      made();
      writeWhole(fileOf(url), `${JSON.stringify(signIn)}\n`);
    },
    remove(url) {
      return unlessMissing(() => rmSync(fileOf(url))) !== null;
    },
    current() {
      const servers = all();
      const named = last();
      if (named !== null && servers.includes(named)) return named;
      return servers.length === 1 ? servers[0]! : null;
    },
    last,
    setCurrent(url) {
      made();
      writeWhole(currentFile, `${url}\n`);
    },
    // The modification time of the file records when the token was given. The content is not rewritten for this, so a
    // concurrent refresh of the token is not lost.
    noteGiven(url) {
      const now = new Date(now_ms());
      unlessMissing(() => utimesSync(fileOf(url), now, now));
    },
    givenLately(url) {
      const since_ms = unlessMissing(() => statSync(fileOf(url)).mtime.getTime());
      return since_ms !== null && now_ms() - since_ms < lately_ms;
    },
    async locked(url, work) {
      made();
      const lock = `${fileOf(url)}.lock`;
      while (!taken(lock)) {
        releaseStale(lock, `${lock}.${newUuid()}`, now_ms());
        await Bun.sleep(poll_ms);
      }
      try {
        return await work();
      } finally {
        rmSync(lock, { force: true });
      }
    },
  };
}

function configurationFolder({ XDG_CONFIG_HOME, HOME }: Services["environment"]): string {
  // The XDG convention says to ignore a path that is not absolute.
  if (XDG_CONFIG_HOME?.startsWith("/")) return XDG_CONFIG_HOME;
  if (HOME) return join(HOME, ".config");
  throw new Error("There is no folder for your sign-ins: set HOME or XDG_CONFIG_HOME.");
}

function taken(lock: string): boolean {
  try {
    writeFileSync(lock, "", { mode: 0o600, flag: "wx" });
    return true;
  } catch (cause) {
    if (codeOf(cause) === "EEXIST") return false;
    throw cause;
  }
}

/** Removes a stale lock. Renames the lock first, so that only one process removes it. */
function releaseStale(lock: string, aside: string, now_ms: number): void {
  const since_ms = unlessMissing(() => statSync(lock).mtime.getTime());
  if (since_ms === null || now_ms - since_ms < stale_ms) return;
  if (unlessMissing(() => renameSync(lock, aside)) !== null) rmSync(aside, { force: true });
}

function unlessMissing<Result>(work: () => Result): Result | null {
  try {
    return work();
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return null;
    throw cause;
  }
}

function signInIn(text: string, file: string, url: string): KeptSignIn {
  try {
    const found = JSON.parse(text) as KeptSignIn;
    const secret = found.kind === "key" ? found.key : found.access_token;
    if (typeof secret === "string" || (found.kind === "key" && isInSystem(found.key))) return found;
  } catch {
    // The error that is thrown below says what to do.
  }
  throw new Error(`${file} is damaged. Sign in again: sluice login ${shellWord(url)}`);
}

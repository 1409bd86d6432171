/**
 * Links that open the console of a node on the same machine, signed in. Each link works once, within ten minutes. Links
 * are only in the memory of this process, and end with it.
 */
import { secretText } from "./identity.ts";

export interface ConsoleLinks {
  /** Makes the code of a link for one sign-in by this user of the operating system. */
  create(localUser: string): string;
  /** Uses up a code, and returns the user for whom it was made; null: the code is used, expired, or unknown. */
  redeem(code: string): string | null;
}

export const link_ms = 10 * 60_000;
/** The most unused codes that are kept; beyond this number, the oldest code is dropped. */
const pending_max = 16;

export function consoleLinks(random: (bytes: number) => Uint8Array, now_ms: () => number): ConsoleLinks {
  const pending = new Map<string, { localUser: string; until_ms: number }>();
  return {
    create(localUser) {
      const code = secretText(random);
      pending.set(code, { localUser, until_ms: now_ms() + link_ms });
      if (pending.size > pending_max) pending.delete(pending.keys().next().value as string);
      return code;
    },
    redeem(code) {
      const found = pending.get(code);
      pending.delete(code);
      return found && now_ms() < found.until_ms ? found.localUser : null;
    },
  };
}

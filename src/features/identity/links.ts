/**
 * The links that open the console of a node on the own machine, signed in: each counts once, for ten minutes. They are known
 * to this process alone, and end with it.
 */
import { secretText } from "./identity.ts";

export interface ConsoleLinks {
  /** A code that opens the console once, for this user of the system. */
  create(localUser: string): string;
  /** Whose code it is; null: it is used, old, or none. */
  redeem(code: string): string | null;
}

export const link_ms = 10 * 60_000;
/** The oldest code goes when there are more. */
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

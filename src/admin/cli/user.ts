/** The operating system's user, for the audit log. */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";

/**
 * The name of this process's user, looked up by the numeric user ID. Bun reads the name from the variable USER, which
 * anybody can set and which services and containers often lack.
 */
export function systemUser(): string {
  const uid = process.getuid?.();
  if (uid === undefined) return fromSystem().username || "unknown";
  return fromPasswd(uid) ?? (known(fromSystem().username) || userNumbered(uid));
}

/** The name of the user with this numeric ID; `uid-` and the number if it has no name. */
export function userNumbered(uid: number): string {
  return fromPasswd(uid) ?? `uid-${uid}`;
}

const known = (username: string) => (username === "unknown" ? "" : username);

function fromSystem(): { username: string } {
  try {
    return userInfo();
  } catch {
    return { username: "" };
  }
}

function fromPasswd(uid: number): string | null {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return lines.map((line) => line.split(":")).find(([, , id]) => id === String(uid))?.[0] ?? null;
  } catch {
    return null;
  }
}

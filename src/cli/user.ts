/** The operating system's user, for the audit log. */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";

/** Bun reads the name from USER, which services and containers often lack; a container's user may have no name. */
export function systemUser(): string {
  const uid = process.getuid?.();
  const { username } = fromSystem();
  if (username && username !== "unknown") return username;
  return (uid === undefined ? null : fromPasswd(uid)) ?? `uid-${uid ?? "unknown"}`;
}

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

/** The operating system's name of who runs this, for the audit log. */
import { readFileSync } from "node:fs";
import { userInfo } from "node:os";

/** Bun takes the name from USER, which services and containers often lack; and a container may run as a nameless number. */
export function systemUser(): string {
  const uid = process.getuid?.();
  const { username } = known();
  if (username && username !== "unknown") return username;
  return (uid === undefined ? null : listed(uid)) ?? `uid-${uid ?? "unknown"}`;
}

function known(): { username: string } {
  try {
    return userInfo();
  } catch {
    return { username: "" };
  }
}

function listed(uid: number): string | null {
  try {
    const lines = readFileSync("/etc/passwd", "utf8").split("\n");
    return lines.map((line) => line.split(":")).find(([, , id]) => id === String(uid))?.[0] ?? null;
  } catch {
    return null;
  }
}

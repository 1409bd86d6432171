/** The operating system's name of who runs this. A container may run as a number that has none. */
import { userInfo } from "node:os";

export function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.() ?? "unknown"}`;
  }
}

import { execFileSync } from "node:child_process";

/** A number below 2^31 that is different for each commit; without git, the number of the day. */
export function commitNumber(): number {
  try {
    const hash = execFileSync("git", ["rev-parse", "HEAD"], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return Number.parseInt(hash.slice(0, 7), 16);
  } catch {
    return Math.floor(Date.now() / (24 * 3_600_000));
  }
}

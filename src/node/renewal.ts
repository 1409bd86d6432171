/** Notices that the certificate's files have changed, and serves the new certificate. */
import { described, type Identity, type IdentityFiles, readIdentity } from "../config/certificate.ts";
import type { ReadFile } from "../config/source.ts";
import type { Listening } from "../core/http/listen.ts";
import type { Log } from "../core/http/log.ts";
import { repeating } from "../core/time/clock.ts";

/** How often the files are read. They are small, so this costs little. */
const look_ms = 5000;

export function renewal(
  files: IdentityFiles,
  first: Identity,
  { readFile, listening, log }: { readFile: ReadFile; listening: Pick<Listening, "renew">; log: Pick<Log, "event"> },
) {
  let current = first;
  let expiresAt = described(first.certificate).expires;
  /** The last problem, so that it is logged only once. */
  let refused: string | null = null;

  /** Reads the files now, without waiting for the next interval. */
  const look = (): void => {
    const problem = renewed();
    if (problem !== null && problem !== refused) {
      log.event("error", "certificate_refused", { problem, in_force: "the previous one" });
    }
    refused = problem;
  };

  function renewed(): string | null {
    const read = readIdentity(files, readFile);
    if ("problem" in read) return read.problem;
    const { identity } = read;
    if (identity.certificate === current.certificate && identity.key === current.key) return null;
    try {
      listening.renew(identity);
    } catch {
      return `${files.certificateFile}, which cannot be served`;
    }
    current = identity;
    const { names, expires } = described(identity.certificate);
    expiresAt = expires;
    log.event("info", "certificate_renewed", { names, expires: expires.toISOString() });
    return null;
  }

  repeating(async () => look(), { every: look_ms });
  return { look, expiresAt: () => expiresAt };
}

/** Helpers for HTTP calls to a running server. */
import type { Verb } from "../management/verb.ts";

/** Makes a call. If the server cannot be reached, throws an Error that names the URL. */
export async function reached({ url }: { url: string }, work: () => Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`${url} cannot be reached: ${why}`, { cause });
  }
}

const call_ms = 60_000;
/** The time limit of a check of all records, which can take long. */
const check_ms = 30 * 60_000;

/** The time for which a command waits for the answer to a verb. */
export const wait_ms = ({ name }: Pick<Verb, "name">): number => (name === "checkUsage" ? check_ms : call_ms);

export async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return null;
  }
}

/** The code of a failed system call, such as `ENOENT`; null: the error has none. */
export function codeOf(cause: unknown): string | null {
  return cause instanceof Error && "code" in cause && typeof cause.code === "string" ? cause.code : null;
}

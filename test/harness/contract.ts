// Every answer of a test run is checked against the contract; one validator serves a whole test file.

import { type ReadHeaders, responseValidator } from "./conformance.ts";

const problems = responseValidator();

/** What is wrong with an answer; empty when it conforms. An answer that was cut off (no text, no length) has no body to judge. */
export function contractProblems(
  method: string,
  path: string,
  response: { status: number; headers: ReadHeaders },
  text: string,
): string[] {
  const isUnread = text === "" && response.headers.get("content-length") !== "0" && method !== "HEAD";
  const body = isUnread ? null : text;
  return problems({ method, path, status: response.status, headers: response.headers, body });
}

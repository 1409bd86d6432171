// Checks every response of a test run against the contract. All tests of a file share one validator.

import { type ReadHeaders, responseValidator } from "./conformance.ts";

const problems = responseValidator();

/** The problems of a response; empty when it conforms. The body of a response that was cut off is not checked. */
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

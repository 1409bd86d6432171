/** What becomes of a request, told as it happens to whoever watches: test/harness keeps a log of it. */
export interface Watch {
  body(text: string): void;
  status(status: number): void;
  /** So many more output tokens were generated: what a real engine would count, also when the client left. */
  tokens(count: number): void;
  /** Told once or more; the first counts. `cut`: the simulator broke the connection, as asked. */
  ended(how: Ending): void;
}

export type Ending = "complete" | "client-left" | "cut";

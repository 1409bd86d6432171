/** Observes how a request is answered. test/harness keeps a log of these observations. */
export interface Watch {
  body(text: string): void;
  status(status: number): void;
  /** Counts generated output tokens. A real engine would count them even after the client left. */
  tokens(count: number): void;
  /**
   * Records how the answer ended. It is called at least once, and only the first call counts. `cut`: the simulator
   * broke the connection, as requested.
   */
  ended(how: Ending): void;
}

export type Ending = "complete" | "client-left" | "cut";

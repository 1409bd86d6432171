/**
 * Orders the work on the single session of the embedded database. Statements are sent at once and answered in order, so
 * many may be pending; a transaction has the session for itself until it ends. All are served in the order of their
 * arrival.
 */
export interface Turns {
  /** `send` must send its statement before it returns. */
  statement<T>(send: () => Promise<T>): Promise<T>;
  transaction<T>(work: () => Promise<T>): Promise<T>;
}

export function takingTurns(): Turns {
  let gate: Promise<unknown> = Promise.resolve();
  return {
    async statement<T>(send: () => Promise<T>): Promise<T> {
      let answer: Promise<T> | undefined;
      const sent = gate.then(() => {
        answer = send();
        answer.catch(() => {});
      });
      gate = sent;
      await sent;
      return answer!;
    },
    transaction(work) {
      const mine = gate.then(work);
      gate = mine.catch(() => {});
      return mine;
    },
  };
}

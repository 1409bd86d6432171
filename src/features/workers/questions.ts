/**
 * Sends questions to all workers, and collects their answers. A worker that does not answer in time is not waited for.
 */

interface Open<Told> {
  answers: Map<number, Told | null>;
  waiting: Set<number>;
  done(): void;
}

export function questions<Told>(wait_ms: number) {
  const open = new Map<number, Open<Told>>();
  let nextQuestion = 0;
  const closed = (one: Open<Told>, worker: number) => {
    one.waiting.delete(worker);
    if (one.waiting.size === 0) one.done();
  };
  return {
    /**
     * Resolves when all workers have answered or ended, or the time is over. A missing answer is null, and so is that
     * of a worker that has ended meanwhile.
     */
    async ask(workers: readonly number[], send: (question: number) => void): Promise<Map<number, Told | null>> {
      const { promise, resolve } = Promise.withResolvers<void>();
      const answers = new Map<number, Told | null>(workers.map((worker) => [worker, null]));
      const question = nextQuestion++;
      open.set(question, { answers, waiting: new Set(workers), done: resolve });
      const timer = setTimeout(resolve, workers.length > 0 ? wait_ms : 0);
      send(question);
      await promise;
      clearTimeout(timer);
      open.delete(question);
      return answers;
    },
    told(worker: number, question: number, told: Told): void {
      const one = open.get(question);
      if (!one?.waiting.has(worker)) return;
      one.answers.set(worker, told);
      closed(one, worker);
    },
    gone(worker: number): void {
      for (const one of open.values()) {
        // The worker's answer is dropped, because the caller already counts the worker among those that have ended.
        if (one.answers.has(worker)) one.answers.set(worker, null);
        closed(one, worker);
      }
    },
  };
}

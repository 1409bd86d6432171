// The logs of the answers in a history (a simulated run), in the same store as the rates (Redis): all of them may be
// forgotten at once.

import type { AnswerLogs, Appended, LogEntry } from "../../src/features/responses/store/answer-log.ts";
import type { Node } from "./node.ts";
import { carried } from "./rates.ts";
import type { World } from "./world.ts";

export class LogsModel {
  readonly #logs = new Map<string, LogEntry[]>();

  append(name: string, number: number, entry: LogEntry): Appended {
    const log = this.#logs.get(name) ?? [];
    const ended = log.at(-1)?.isEnd === true;
    if (number < log.length) {
      const same = log[number]!;
      return same.text === entry.text && same.isEnd === entry.isEnd ? "appended" : ended ? "ended" : "lost";
    }
    if (ended) return "ended";
    if (number > log.length) return "lost";
    this.#logs.set(name, [...log, entry]);
    return "appended";
  }

  read(name: string, from: number): LogEntry[] {
    return (this.#logs.get(name) ?? []).slice(from);
  }

  remove(name: string): void {
    this.#logs.delete(name);
  }

  flush(): void {
    this.#logs.clear();
  }
}

export function logsOf(world: World, node: Node): AnswerLogs {
  const there = () => (world.ratesAway ? null : world.logs);
  const call = <Result>(about: string, name: string, act: (logs: LogsModel) => Result): Promise<Result> =>
    carried(world, node, `${about}-${name}`, () => {
      const logs = there();
      return logs && Promise.resolve(act(logs));
    });
  return {
    append: ({ requestId }, number, entry) =>
      call("append", requestId, (logs) => logs.append(requestId, number, { ...entry })),
    read: ({ requestId }, from) => call("read", requestId, (logs) => logs.read(requestId, from)),
    remove: async (names) => {
      for (const { requestId } of names) await call("remove", requestId, (logs) => logs.remove(requestId));
    },
  };
}

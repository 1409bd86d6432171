/** A process that is one worker of a node: its channel to the supervisor, and the signals that it receives itself. */
import { type Channel, joinNode, type Member } from "../features/workers/member.ts";
import type { Order, Word } from "../features/workers/messages.ts";

export async function joinedAs(number: number): Promise<Member> {
  return joinNode(number, channelToParent(), signalled());
}

/**
 * Resolves with the first signal, which drains this process. Further ones are ignored: the supervisor gets them too,
 * and decides whether to hurry.
 */
function signalled(): Promise<NodeJS.Signals> {
  process.on("SIGHUP", () => {});
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve(signal));
  });
}

function channelToParent(): Channel {
  if (!process.send) throw new Error("--worker is for processes that sluice serve starts itself; set SLUICE_WORKERS");
  // The log goes to the supervisor; if the supervisor has ended, nobody reads the log.
  process.stderr.on("error", () => {});
  return {
    send(word: Word) {
      if (process.connected) process.send!(word);
    },
    onOrder: (take) => void process.on("message", (order) => take(order as Order)),
    onLost: (lost) => void process.on("disconnect", lost),
  };
}

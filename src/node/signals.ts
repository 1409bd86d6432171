/**
 * The signals that ask a process to stop or to reload. SIGHUP asks for a reload, unless it was sent because the
 * terminal of the process has closed; then it asks to stop, as with any other program.
 */
import { isatty } from "node:tty";

export interface Signals {
  /** Resolves with the name of the signal to stop. Call it again for a second signal. */
  stopAsked(): Promise<NodeJS.Signals>;
  /** If the process was asked to reload before, but not before `stopAsked`, `reload` is called at once. */
  onReload(reload: () => void): void;
}

export function processSignals(): Signals {
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
  const hasLostTerminal = () => terminals.some((descriptor) => !isatty(descriptor));
  // The system and the shell both send SIGHUP when a terminal closes, and the second signal does not ask to hurry.
  let isHungUp = false;
  let isReloadAsked = false;
  return {
    stopAsked: () =>
      new Promise((resolve) => {
        for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, resolve);
        process.on("SIGHUP", () => {
          if (!hasLostTerminal()) isReloadAsked = true;
          if (isHungUp || !hasLostTerminal()) return;
          isHungUp = true;
          resolve("SIGHUP");
        });
      }),
    onReload(reload) {
      process.on("SIGHUP", () => {
        if (!hasLostTerminal()) reload();
      });
      if (isReloadAsked) reload();
    },
  };
}

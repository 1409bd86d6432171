/**
 * The signals by which a process of the service is asked to stop or to reload. SIGHUP asks for a reload; but if it comes
 * because the terminal of the process is gone, it asks for the end, as it does of any other program.
 */
import { isatty } from "node:tty";

export interface Signals {
  /** Resolves with the name of the signal to stop. Called again for a second one. */
  stopAsked(): Promise<NodeJS.Signals>;
  onReload(reload: () => void): void;
}

export function processSignals(): Signals {
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
  const hasLostTerminal = () => terminals.some((descriptor) => !isatty(descriptor));
  // The system and the shell both send SIGHUP when a terminal goes, and the second one is no request to hurry.
  let isHungUp = false;
  return {
    stopAsked: () =>
      new Promise((resolve) => {
        for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, resolve);
        process.on("SIGHUP", () => {
          if (isHungUp || !hasLostTerminal()) return;
          isHungUp = true;
          resolve("SIGHUP");
        });
      }),
    onReload: (reload) =>
      void process.on("SIGHUP", () => {
        if (!hasLostTerminal()) reload();
      }),
  };
}

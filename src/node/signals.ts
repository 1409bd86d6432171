/**
 * The signals that ask a process to stop or to reload. SIGHUP asks for a reload, unless it was sent because the
 * terminal of the process has closed; then it asks to stop, as with any other program.
 */
import { isatty } from "node:tty";

export type Signals = ReturnType<typeof processSignals>;

/**
 * A second SIGINT within this time is ignored: npm passes on Ctrl-C, which the terminal has sent to all its processes.
 */
const same_ms = 200;

export function processSignals(now_ms = () => performance.now()) {
  const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor));
  const hasLostTerminal = () => terminals.some((descriptor) => !isatty(descriptor));
  // The system and the shell both send SIGHUP when a terminal closes, so only the first one counts.
  let isHungUp = false;
  let isReloadAsked = false;
  let interrupted_ms = Number.NEGATIVE_INFINITY;
  let waiting: ((signal: NodeJS.Signals) => void)[] = [];
  let isListening = false;
  const tell = (signal: NodeJS.Signals) => {
    const told = waiting;
    waiting = [];
    for (const resolve of told) resolve(signal);
  };
  /**
   * Listens for good: without a listener, a signal that only repeats the first one would end the process immediately.
   */
  const listen = () => {
    isListening = true;
    for (const signal of ["SIGTERM", "SIGINT"] as const)
      process.on(signal, function asked() {
        if (signal === "SIGINT") {
          if (now_ms() - interrupted_ms < same_ms) return;
          interrupted_ms = now_ms();
        }
        if (waiting.length > 0) return tell(signal);
        // If nobody waits for the signal, such as in a start that hangs, it ends the process, as without a listener.
        process.off(signal, asked);
        process.kill(process.pid, signal);
      });
    process.on("SIGHUP", () => {
      if (!hasLostTerminal()) isReloadAsked = true;
      if (isHungUp || !hasLostTerminal()) return;
      isHungUp = true;
      tell("SIGHUP");
    });
  };
  return {
    /** Resolves with the name of the signal to stop. Call `stopAsked` again for a second signal. */
    stopAsked(): Promise<NodeJS.Signals> {
      if (!isListening) listen();
      return new Promise((resolve) => void waiting.push(resolve));
    },
    /** Calls `reload` for each SIGHUP that asks for it; immediately, if one has come since the first `stopAsked`. */
    onReload(reload: () => void): void {
      process.on("SIGHUP", () => {
        if (!hasLostTerminal()) reload();
      });
      if (isReloadAsked) reload();
    },
  };
}

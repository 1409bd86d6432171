/** Runs a program in this process's terminal, passes signals on to it, and returns its exit code. */
import { constants } from "node:os";

const passedOn = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT", "SIGUSR1", "SIGUSR2"] as const;

export async function runToItsEnd(
  command: string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  let child: Bun.Subprocess | null = null;
  // The handlers are set before the agent starts: otherwise a signal right after the start would end only this process.
  const handlers = passedOn.map((signal) => {
    // A key such as Ctrl+C signals every process of the terminal. So the signal is not passed on: a second signal would
    // mean something else to the agent.
    const isTyped = process.stdin.isTTY && (signal === "SIGINT" || signal === "SIGQUIT");
    const handler = () => {
      if (!isTyped) child?.kill(signal);
    };
    process.on(signal, handler);
    return () => process.off(signal, handler);
  });
  try {
    child = Bun.spawn(command, { env: environment, stdin: "inherit", stdout: "inherit", stderr: "inherit" });
    const code = await child.exited;
    return child.signalCode ? 128 + constants.signals[child.signalCode as NodeJS.Signals] : code;
  } finally {
    for (const remove of handlers) remove();
  }
}

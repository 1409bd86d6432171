/** A program in this process's terminal, to which signals go, and whose exit code is ours. */
import { constants } from "node:os";

const passedOn = ["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT", "SIGUSR1", "SIGUSR2"] as const;

export async function runToItsEnd(
  command: string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  let child: Bun.Subprocess | null = null;
  // They come before the agent: a signal that follows its start at once would end this process alone.
  const handlers = passedOn.map((signal) => {
    // A key typed in a terminal signals every process there; a second signal would mean something else.
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

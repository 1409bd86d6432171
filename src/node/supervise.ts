/** Wires a node with several workers: the supervisor with real processes, its log, its signals. */

import type { Configuration } from "../config/configuration.ts";
import { ConfigurationError } from "../config/problem.ts";
import { startPartsOf } from "../config/reload.ts";
import { type MachineRoom, tooSmall } from "../config/workers.ts";
import { freePort } from "../core/http/listen.ts";
import { systemClock } from "../core/time/clock.ts";
import { logTo } from "../features/telemetry/log.ts";
import { merger } from "../features/telemetry/merged.ts";
import type { Child } from "../features/workers/crew.ts";
import { wholeLines } from "../features/workers/lines.ts";
import type { FileRead, Word } from "../features/workers/messages.ts";
import { supervisor } from "../features/workers/supervisor.ts";
import { newIdentity } from "./reporting.ts";

interface Supervising {
  workers: number;
  room: MachineRoom;
  configuration: Configuration;
  /** The command that starts a worker, without its number. */
  command: readonly string[];
  environment: NodeJS.ProcessEnv;
  readFile(): FileRead;
  load(file: FileRead): Configuration | ConfigurationError;
  say(text: string): void;
  stopAsked(): Promise<NodeJS.Signals>;
  onReload(reload: () => void): void;
}

export async function supervise(parts: Supervising): Promise<number> {
  const { workers, configuration, readFile } = parts;
  let settings = configuration.log;
  // A line of this log has the field `worker` only if the line is about a worker.
  const write = (text: string) => void process.stderr.write(text);
  const log = logTo({ write, clock: systemClock(), settings: () => settings });
  const { server } = configuration;
  const notice = tooSmall(workers, parts.room);
  if (notice !== null) log.event("warn", "notice", { notice });
  const written: Promise<void>[] = [];
  if (server.console) freePort(server.console);
  const node = supervisor({
    identity: newIdentity(),
    workers,
    log,
    readFile,
    startParts: startPartsOf(configuration),
    applied(file) {
      const next = parts.load(file);
      if (!(next instanceof ConfigurationError)) settings = next.log;
    },
    now_ms: () => performance.now(),
    metrics: merger(),
    // Checks first that no other program has the port. The workers open it for sharing, so otherwise they would share
    // it with that program.
    port: freePort(server),
    operatorPort: server.operator && freePort(server.operator),
    start(worker, hear) {
      const { child, lines } = started([...parts.command, String(worker)], parts.environment, hear);
      written.push(lines);
      return child;
    },
  });
  parts.onReload(node.reload);
  const stopping = (async () => {
    node.stop(await parts.stopAsked());
    node.stop(await parts.stopAsked());
  })();
  void stopping;
  const url = await Promise.race([node.began, node.ended.then(() => null)]);
  if (url !== null) parts.say(`sluice is serving on ${url}\n`);
  const code = await node.ended;
  await Promise.all(written);
  log.flush();
  return code;
}

function started(command: string[], env: NodeJS.ProcessEnv, hear: (word: Word) => void) {
  const child = Bun.spawn(command, {
    env,
    stdio: ["ignore", "inherit", "pipe"],
    ipc: (word: Word) => hear(word),
  });
  const lines = wholeLines(child.stderr, (text) => void process.stderr.write(text));
  const one: Child = {
    send(order) {
      // A worker that has ended gets no orders.
      if (child.exitCode === null && child.signalCode === null) child.send(order);
    },
    kill: () => child.kill("SIGKILL"),
    ended: child.exited.then((code) => ({ code, signal: child.signalCode === null ? null : String(child.signalCode) })),
  };
  return { child: one, lines };
}

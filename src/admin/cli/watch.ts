/** `--watch`: prints the answer of a live verb, and prints it again whenever it changes. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { decode } from "../../core/schema/codec.ts";
import type { Verb } from "../management/verb.ts";
import type { Management } from "../management/verbs.ts";
import { remoteServer, withManagement } from "./connect.ts";
import type { Services } from "./services.ts";

/**
 * The interval at which the answer is read from a database or over the socket; over HTTP, the node sends changes by
 * itself.
 */
const every_ms = 1_000;

export function addWatch(command: Command): void {
  command.option("--watch", "show it anew whenever it changes, until it is stopped");
}

/** Shows each changed answer until the process is asked to end. */
export async function watched(services: Services, verb: Verb, show: (answer: unknown) => void): Promise<void> {
  const stopped = new AbortController();
  void services.untilStopped().then(() => stopped.abort());
  for await (const answer of followed(services, verb, stopped.signal)) show(answer);
}

async function* followed(services: Services, verb: Verb, stopped: AbortSignal): AsyncGenerator<unknown> {
  const server = remoteServer(services);
  if (server) {
    const { remoteAnswers } = await import("./remote-events.ts");
    for await (const json of remoteAnswers(server, verb, stopped)) yield decode(verb.answers, json);
    return;
  }
  while (!stopped.aborted) {
    yield await withManagement(services, (manage) =>
      (manage[verb.name as keyof Management] as () => Promise<unknown>)(),
    );
    await sleep(every_ms, null, { signal: stopped }).catch(() => {});
  }
}

/** Serves with a node, from its configuration to its exit code: builds it, warms it up, listens, drains. */

import { appliedIn } from "../../db/migrate.ts";
import { adminSocket } from "../admin/cli/socket.ts";
import { client } from "../admin/management/client.ts";
import type { Log } from "../core/http/log.ts";
import { compact } from "../core/protocol/json.ts";
import { hasOrganizations, planUse } from "../stores/postgres/plan-use.ts";
import type { Foundation, Serving } from "./foundation.ts";
import { type Listeners, listeners } from "./listeners.ts";
import { settingsOf } from "./membership.ts";
import { namedLater } from "./naming.ts";
import { type Node, startNode } from "./node.ts";
import { logOf } from "./node-log.ts";
import { reload, reportAtStart } from "./reloading.ts";
import { type WarmUpParts, warmUp, warmUpInIdleMoments } from "./warm-up.ts";
import { consoleText, createDemo, type Demo, firstOrganizationText, welcomeText } from "./welcome.ts";

/**
 * Serves until the node stops, and returns the exit code. Throws the failure that ended the node, such as one of the
 * embedded database, which the supervisor's next process opens again.
 */
export async function serve(asked: Serving): Promise<number> {
  const { configuration, database, member, waiting } = asked;
  const log = logOf(configuration.current, member);
  const serving = endedByDatabase(asked, log);
  const outage = (event: string) => (cause: unknown) => log.event("warn", event, { cause: String(cause) });
  const usual = settingsOf(configuration.current(), member);
  const settings = waiting ? { ...usual, server: waiting.server } : usual;
  try {
    await using ending = new AsyncDisposableStack();
    ending.defer(() => database.close());
    const naming = namedLater(configuration, log);
    ending.defer(() => void naming.stop());
    const foundation: Foundation = { serving, settings, log, outage, unknownModel: naming.doubt };
    const node = ending.use(await startNode(foundation));
    await served(foundation, node, ending);
  } catch (cause) {
    log.flush();
    throw cause;
  }
  log.event("info", "stopped");
  log.flush();
  return 0;
}

/** Lets a failure of the embedded database's engine stop the node immediately, as a second signal does. */
function endedByDatabase(serving: Serving, log: Log): Serving {
  const failed = serving.database.failed?.then((cause) => {
    log.event("error", "database_failed", { cause });
    return "database_failed";
  });
  if (!failed) return serving;
  return {
    ...serving,
    stopping: Promise.race([serving.stopping, failed]),
    stopAsked: () => Promise.race([serving.stopAsked(), failed]),
  };
}

async function served(foundation: Foundation, node: Node, ending: AsyncDisposableStack): Promise<void> {
  const { serving, settings, log, outage } = foundation;
  const { configuration, database, member, waiting } = serving;
  const isEmbedded = database.kind === "pglite";
  /** The listeners; null until the ports listen. The administration's socket listens earlier. */
  const started: { listeners: Listeners | null } = { listeners: null };
  if (isEmbedded) {
    const { dataDir } = settings.storage;
    const linking = node.console.linking(() => started.listeners?.openConsole());
    const actAs = (actor: string) => node.actAs(actor, started.listeners && linking);
    const socket = await adminSocket({
      dataDir,
      actAs,
      ...compact({ tryAs: node.tryAs }),
      migrations: await appliedIn(database),
      failed: outage("administration_failed"),
    });
    ending.defer(() => socket.stop());
  }
  const use = () => planUse(database);
  await Promise.all([
    reportAtStart(configuration, use, node.inForce.plans(), log),
    node.readinessBegan,
    node.prepareNames(configuration.current()),
  ]);
  const prepared = listeners(node.dependencies, node, {
    server: settings.server,
    limits: settings.limits,
    log,
    onReload: serving.onReload,
    isShared: member !== null,
  });
  const warming = warmingOf(foundation, node);
  if (!waiting) prepared.checkPorts();
  if (!isEmbedded) await warmUp(warming);
  await node.existingRead;
  if (warming.stopped.aborted) return;
  // The demo organization is created before the ports open, so that a script that waits for /readyz finds its key.
  const demo = isEmbedded ? await demoOf(serving, node) : null;
  await waiting?.handOver();
  const listening = prepared.listen();
  started.listeners = listening;
  ending.use(node.startReporting(listening));
  const needs = { use, prepareNames: node.prepareNames };
  const reloaded = () => reload(configuration, needs, node.publishing, member?.agree).then(node.inForce.read);
  serving.onReload(() => void reloaded().catch(outage("limits_unread")));
  if (isEmbedded) {
    if (demo) serving.say(demo === "none" ? firstOrganizationText : welcomeText(demo, listening.url));
    if (serving.isTerminal && node.console.isLocal) {
      listening.openConsole();
      serving.say(consoleText(node.console.link(serving.user)));
    }
    const warmed = warmUpInIdleMoments(warming, () => node.lifecycle.openCount === 0);
    ending.defer(() => warmed);
  }
  if (member) member.serving(listening.url, node.report);
  else serving.say(`sluice is serving on ${listening.url}\n`);
  await untilStopped(foundation, { listening, ...node });
}

function warmingOf({ serving, settings, log }: Foundation, node: Node): WarmUpParts {
  const stopped = new AbortController();
  void serving.stopping.then(() => stopped.abort());
  return {
    warm_up_ms: settings.server.warm_up_ms,
    start: node.startWarmNode,
    log,
    stopped: stopped.signal,
  };
}

/**
 * The demo organization. It is created only if there are no organizations and no sluice.yaml; null if there are
 * organizations. `none`: the service was configured, and has no organization yet.
 */
async function demoOf({ configuration, database, isTerminal }: Serving, node: Node): Promise<Demo | "none" | null> {
  if (await hasOrganizations(database)) return null;
  if (configuration.current().hasFile) return "none";
  return createDemo({
    manage: client(node.actAs("service")),
    catalog: node.dependencies.catalog(),
    dataDir: configuration.current().storage.dataDir,
    now_ms: Date.now(),
    isTerminal,
  });
}

interface Draining extends Pick<Node, "lifecycle" | "sockets"> {
  listening: Listeners;
}

/** The time that answers get to be sent, however late they were made. */
const sent_ms_min = 500;

/** Waits for the signal to stop, and drains. Resolves when the open requests were answered, or their time is over. */
async function untilStopped(
  { serving: { stopping, stopAsked, member }, settings: { limits }, log }: Foundation,
  { listening, lifecycle, sockets }: Draining,
): Promise<void> {
  const signal = await stopping;
  if (member?.isAlone()) log.event("warn", "supervisor_lost");
  log.event("info", "draining", { signal, open_requests: lifecycle.openCount });
  lifecycle.startDraining();
  const again = stopAsked();
  await Promise.race([Bun.sleep(signal === "SIGINT" ? 0 : limits.drain_delay_ms), again]);
  await listening.refuse();
  sockets.retire();
  const until_ms = performance.now() + limits.drain_ms;
  await Promise.race([lifecycle.finish(limits.drain_ms), again.then(() => lifecycle.finish(0))]);
  // Answers that are made but not sent have the rest of the time.
  const rest_ms = Math.max(sent_ms_min, until_ms - performance.now());
  await Promise.race([listening.stop(), Bun.sleep(rest_ms), again.then(() => Bun.sleep(sent_ms_min))]);
  await listening.stopOperator();
}

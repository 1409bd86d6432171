/**
 * A worker's side of the channel to the supervisor: its orders, its reports, and its questions to the other workers.
 */

import type { Format, Told } from "../../core/http/observer.ts";
import type { RouteView } from "../../core/routing/view.ts";
import { within } from "../../core/time/cancellation.ts";
import type { FileRead, NodeState, Order, Word, WorkerRoute } from "./messages.ts";
import { surplusOf } from "./surplus.ts";

const sample_ms = 100;
const samples_per_word = 10;
/** How long a worker waits for the supervisor's answer: longer than the supervisor waits for the other workers. */
const answer_ms = 5000;

export interface Channel {
  send(word: Word): void;
  onOrder(take: (order: Order) => void): void;
  /** Calls `lost` if the supervisor ends. */
  onLost(lost: () => void): void;
}

/** The values that a serving process reports about itself. */
interface Own {
  /** The reason why the process cannot admit requests; null if it can. */
  problem(): string | null;
  openCount(): number;
  values(): Told[];
  routes(): RouteView[];
}

export type Member = Awaited<ReturnType<typeof joinNode>>;

/**
 * Resolves when the supervisor has sent the configuration for the start. `signalled`: resolves with a signal that this
 * process itself gets.
 */
export async function joinNode(number: number, channel: Channel, signalled: Promise<NodeJS.Signals>) {
  const begun = Promise.withResolvers<Extract<Order, { order: "begin" }>>();
  const stopped = Promise.withResolvers<NodeJS.Signals>();
  const hurried = Promise.withResolvers<NodeJS.Signals>();
  const questions = new Map<number, (answer: string | WorkerRoute[]) => void>();
  const reloads: (() => void)[] = [];
  let nextQuestion = 0;
  let file: FileRead = { bytes: null, changedAt_ms: null };
  let node: NodeState = { wanted: 1, serving: 1, deaths: 0, failing: [], open_mean: 0 };
  /**
   * The key is the number of a vote; the value resolves with its verdict, the objections of all workers. A verdict may
   * arrive before this worker has voted.
   */
  const verdicts = new Map<number, PromiseWithResolvers<readonly string[]>>();
  const rounds: number[] = [];
  let own: Own | null = null;
  let open = 0;
  let surplus = 0;
  let isAlone = false;
  let stops = 0;

  function tell(question: number, what: "values" | "routes"): void {
    if (own) channel.send({ word: "told", question, told: what === "values" ? own.values() : own.routes() });
  }
  channel.onOrder((order) => {
    if (order.order === "begin") {
      file = order.file;
      begun.resolve(order);
    } else if (order.order === "reload") {
      file = order.file;
      rounds.push(order.round);
      verdicts.set(order.round, Promise.withResolvers());
      for (const reload of reloads) reload();
    } else if (order.order === "verdict") verdicts.get(order.round)?.resolve(order.problems);
    else if (order.order === "tell") tell(order.question, order.what);
    else if (order.order === "answer") questions.get(order.question)?.(order.answer);
    else if (order.order === "know") {
      node = order.node;
      surplus = surplusOf(open, node.open_mean);
    } else if (order.order === "stop") stopped.resolve(order.signal);
    else if (order.order === "hurry") hurried.resolve("SIGTERM");
  });
  channel.onLost(() => {
    isAlone = true;
    for (const { resolve } of verdicts.values()) resolve(["the supervisor is gone"]);
    // The supervisor is gone. The worker stops without the delay for balancers, because a new node may be started and
    // need the port.
    stopped.resolve("SIGINT");
  });
  void signalled.then(stopped.resolve);
  channel.send({ word: "here" });
  const { identity, workers, port, operatorPort, isReplaced, startParts } = await begun.promise;

  async function ask(what: Format | "routes"): Promise<string | WorkerRoute[]> {
    const question = nextQuestion++;
    const { promise, resolve } = Promise.withResolvers<string | WorkerRoute[]>();
    questions.set(question, resolve);
    channel.send({ word: "asks", question, what });
    return within(promise, answer_ms, "the supervisor").finally(() => questions.delete(question));
  }

  return {
    number,
    identity,
    workers,
    port,
    operatorPort,
    /** Whether other workers serve, so that this one is replaced if it cannot start. */
    isReplaced,
    /** The contents of sluice.yaml at the start or at the last reload. */
    file: () => file,
    startParts,
    /** The metrics of all workers, for a client whose request reached this worker. */
    metrics: async (format: Format) => (await ask(format)) as string,
    routes: async () => (await ask("routes")) as WorkerRoute[],
    node: () => node,
    /** Whether the connection of this answer should be closed, so that its client may connect to another worker. */
    shedsConnection(): boolean {
      if (surplus === 0) return false;
      surplus -= 1;
      return true;
    },
    onReload: (reload: () => void) => void reloads.push(reload),
    /**
     * Proposes a new configuration. Resolves with the objections of all workers; if there are none, all workers apply
     * the configuration.
     */
    async agree(problems: readonly string[]): Promise<readonly string[]> {
      const round = rounds.shift()!;
      if (!isAlone) channel.send({ word: "vote", round, problems });
      const verdict = await verdicts.get(round)!.promise;
      verdicts.delete(round);
      return verdict;
    },
    serving(url: string, itself: Own): void {
      own = itself;
      channel.send({ word: "serving", url });
      let [sum, samples] = [0, 0];
      const sampling = setInterval(() => {
        sum += itself.openCount();
        samples += 1;
        if (samples < samples_per_word) return;
        open = sum / samples;
        [sum, samples] = [0, 0];
        channel.send({ word: "well", problem: itself.problem(), open });
      }, sample_ms);
      sampling.unref();
    },
    /** Resolves with the signal to stop. If called again, resolves when requests must not be waited for any longer. */
    stopAsked: () => (stops++ === 0 ? stopped.promise : hurried.promise),
    isAlone: () => isAlone,
  };
}

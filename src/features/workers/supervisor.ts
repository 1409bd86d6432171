/**
 * The supervisor watches the workers of a node, passes signals on, and combines their reports. It serves no requests
 * itself, so no request can crash it.
 */
import type { Log } from "../../core/http/log.ts";
import type { Format, Told } from "../../core/http/observer.ts";
import type { RouteView } from "../../core/routing/view.ts";
import type { NodeIdentity } from "../../core/store/fleet.ts";
import { type Ballot, ballot } from "./ballot.ts";
import { type Child, crew, type Worker } from "./crew.ts";
import type { FileRead, NodeState, Order, StartParts, Word, WorkerRoute } from "./messages.ts";
import { questions } from "./questions.ts";

const second_ms = 1000;
const told_ms = 2000;
const ballot_ms = 15_000;
/** A worker that has been silent for this many seconds hangs: it is killed, and other nodes settle its requests. */
const silence_s_max = 30;
/** A worker that has been silent for this many seconds counts as not ready: its clients may have to wait. */
const silence_s_ready = 5;

interface SupervisorParts {
  identity: NodeIdentity;
  workers: number;
  port: number;
  operatorPort: number | null;
  readFile(): FileRead;
  startParts: StartParts;
  /** Called with each file that all workers have applied. */
  applied(file: FileRead): void;
  start(worker: number, hear: (word: Word) => void): Child;
  log: Pick<Log, "event">;
  now_ms(): number;
  metrics: Merger;
}

interface Merger {
  /**
   * The merged text. `told`: the metrics of each worker; null: the worker did not answer, and its last known counts are
   * used.
   */
  text(told: ReadonlyMap<number, Told[] | null>, format: Format): Promise<string>;
  gone(worker: number): void;
}

export function supervisor(parts: SupervisorParts) {
  const { identity, workers, port, operatorPort, startParts, log, now_ms } = parts;
  const telling = askingAll(parts.metrics);
  const all = crew({
    workers,
    log,
    now_ms,
    start: (worker, number) => parts.start(number, (word) => hear(worker(), word)),
    gone(number) {
      telling.gone(number);
      reloading.gone(number);
      tellState();
    },
  });
  const reloading = reloads(parts, all.serving);
  let isStopping = false;

  function hear(worker: Worker, word: Word): void {
    if (word.word === "here") {
      worker.file = reloading.file();
      const isReplaced = all.serving().length > 0;
      const given = { identity, workers, port, operatorPort, isReplaced, file: worker.file, startParts };
      worker.child.send({ order: "begin", ...given });
    } else if (word.word === "serving") {
      all.serves(worker, word.url);
      tellState();
      reloading.serves(worker);
    } else if (word.word === "well") Object.assign(worker, { problem: word.problem, open: word.open, silent_s: 0 });
    else if (word.word === "vote") reloading.vote(worker.number, word);
    else if (word.word === "told") telling.told(worker.number, word.question, word.told);
    else void answer(worker, word);
  }

  async function answer({ child }: Worker, { question, what }: Extract<Word, { word: "asks" }>): Promise<void> {
    const serving = all.serving();
    const answer = await (what === "routes" ? telling.routes(serving) : telling.metrics(serving, what));
    child.send({ order: "answer", question, answer });
  }

  function state(): NodeState {
    const serving = all.serving();
    const failing = serving.flatMap((worker) => {
      const problem = problemOf(worker);
      return problem === null ? [] : [{ worker: worker.number, problem }];
    });
    const open_mean = serving.reduce((sum, { open }) => sum + open, 0) / Math.max(1, serving.length);
    return { wanted: workers, serving: serving.length, deaths: all.deaths(), failing, open_mean };
  }
  const tellState = () => toAll({ order: "know", node: state() }, all.serving());

  const ticking = setInterval(() => {
    for (const worker of all.serving()) {
      worker.silent_s += 1;
      if (worker.silent_s < silence_s_max) continue;
      log.event("error", "worker_silent", { worker: worker.number, seconds: silence_s_max });
      worker.child.kill();
    }
    tellState();
  }, second_ms);
  void all.ended.then(() => clearInterval(ticking));

  return {
    began: all.began,
    ended: all.ended,
    /** Lets all workers read the configuration file again, and apply it or keep the old one. */
    reload: reloading.reload,
    /** Lets the workers drain. If `stop` is called again, the workers stop immediately. */
    stop(signal: NodeJS.Signals): void {
      if (isStopping) toAll({ order: "hurry" }, all.serving());
      else all.stop(signal);
      isStopping = true;
    },
  };
}

function problemOf({ problem, silent_s }: Worker): string | null {
  return silent_s > silence_s_ready ? `has said nothing for ${silent_s} s` : problem;
}

function toAll(order: Order, workers: Iterable<Worker>): void {
  for (const { child } of workers) child.send(order);
}

/** Asks all workers for their metrics or routes, on behalf of a client that asked one of them. */
function askingAll(merging: Merger) {
  const asked = questions<Told[] | RouteView[]>(told_ms);
  const ask = (workers: readonly Worker[], what: "values" | "routes") =>
    asked.ask(
      workers.map(({ number }) => number),
      (question) => toAll({ order: "tell", question, what }, workers),
    );
  return {
    async metrics(workers: readonly Worker[], format: Format): Promise<string> {
      return merging.text((await ask(workers, "values")) as Map<number, Told[] | null>, format);
    },
    async routes(workers: readonly Worker[]): Promise<WorkerRoute[]> {
      const told = (await ask(workers, "routes")) as Map<number, RouteView[] | null>;
      return [...told].flatMap(([worker, routes]) => (routes ?? []).map((one) => ({ ...one, worker })));
    },
    told: asked.told,
    gone(worker: number) {
      asked.gone(worker);
      merging.gone(worker);
    },
  };
}

/** The configuration file in force, and the vote over another one. There is one vote at a time. */
function reloads({ readFile, applied }: Pick<SupervisorParts, "readFile" | "applied">, serving: () => Worker[]) {
  let file = readFile();
  let round = 0;
  let voting: Ballot | null = null;
  let isWanted = false;

  function over(next: FileRead, problems: readonly string[]): void {
    if (problems.length === 0) file = next;
    if (problems.length === 0) applied(next);
    voting = null;
    toAll({ order: "verdict", round, problems }, serving());
    if (!isWanted) return;
    isWanted = false;
    reload(readFile());
  }

  function reload(next: FileRead): void {
    const voters = serving();
    // Without voters, the first worker that serves begins the vote.
    isWanted = voting !== null || voters.length === 0;
    if (isWanted) return;
    round += 1;
    toAll({ order: "reload", round, file: next }, voters);
    const numbers = voters.map(({ number }) => number);
    voting = ballot(numbers, ballot_ms, (problems) => over(next, problems));
  }

  return {
    file: () => file,
    reload: () => reload(readFile()),
    /** A worker that was still starting during the vote may have started with the old file. */
    serves(worker: Worker) {
      if (isWanted && voting === null) reload(readFile());
      else if (worker.file !== file) reload(file);
    },
    vote(worker: number, vote: { round: number; problems: readonly string[] }) {
      if (vote.round === round) voting?.vote(worker, vote.problems);
    },
    gone: (worker: number) => voting?.leave(worker),
  };
}

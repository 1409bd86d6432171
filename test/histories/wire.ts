// The wire between a node and the store in a history (a simulated run): every message may be delayed, doubled, lost, or
// carried out with an answer that comes late or never.

import type { Command, Ledger, LedgerAnswer } from "../../src/core/store/ledger.ts";
import type { Judge } from "./judge.ts";
import type { Node } from "./node.ts";
import type { Entry } from "./store.ts";
import type { Fate, Trouble, World } from "./world.ts";

/** The functions of the ledger that a node's admission uses. */
export type NodeLedger = Pick<Ledger, "run" | "recover">;

interface Done<Result> {
  result: Result;
  entry: Entry;
}
type Act<Result> = (fate: Fate) => Done<Result>;

/**
 * The time that a node waits for an answer; then it gives up the call, and with it the connection
 * (src/stores/postgres/ledger.ts).
 */
const answer_ms_max = 5_000;

export function wireOf(world: World, judge: Judge, node: Node): NodeLedger {
  return {
    async run(commands: readonly Command[]): Promise<LedgerAnswer[]> {
      const batch = [...commands];
      judge.sent(batch);
      const sent_ms = world.time.now_ms;
      node.underway += 1;
      try {
        const done = await passage(
          world,
          node,
          nameOf(batch[0]!),
          () => batch.map(inWords).join(", "),
          (fate) => {
            const { answers, entry } = world.store.run(batch, fate.flush_ms, node.plan.wall_ms);
            world.tell(() => `  the store answers ${fate.id}: ${answers.map(answerInWords).join(", ")}`);
            judge.carriedOut(batch, answers, entry, sent_ms);
            return { result: answers, entry };
          },
        );
        judge.answered(batch, done.result);
        return done.result;
      } finally {
        node.underway -= 1;
      }
    },
    async recover(limit, range) {
      const done = await passage(
        world,
        node,
        "recover",
        () => `up to ${limit}`,
        (fate) => {
          const done = world.store.recover(limit, range, fate.flush_ms);
          const { settled } = done.result;
          if (settled > 0) world.tell(() => `  the store settles ${settled} lapsed holds for ${fate.id}`);
          const { at } = done.result;
          judge.recovered(settled, limit > 0 && range !== undefined && (at < range.earliest || at > range.latest));
          return done;
        },
      );
      return done.result;
    },
  };
}

/**
 * Carries a statement that is sent only once, whatever happens: it may be carried out when its node no longer waits for
 * it.
 */
export async function carriedOnce<Result>(
  world: World,
  node: Node,
  about: string,
  act: (flush_ms: number) => Done<Result>,
): Promise<Result> {
  const carry = (fate: Fate) => act(fate.flush_ms);
  return (await passage(world, node, about, () => about, carry, { isSentOnce: true })).result;
}

/** Carries one message to the store and its answer back. */
function passage<Result>(
  world: World,
  node: Node,
  about: string,
  what: () => string,
  act: Act<Result>,
  { isSentOnce = false } = {},
): Promise<Done<Result>> {
  const { time, store } = world;
  const drawn = world.fate(node.nextMessage(about));
  const fate = isSentOnce ? { ...drawn, again_ms: null } : drawn;
  const trouble: Trouble = { from_ms: time.now_ms, to_ms: Number.POSITIVE_INFINITY };
  if (fate.harmed || node.cut) node.troubles.push(trouble);
  world.tell(() => `node ${node.name} sends ${fate.id}: ${what()}${inWordsOf(fate)}`);

  return new Promise((resolve, reject) => {
    let isHeard = false;
    const hear = (delay_ms: number, outcome: () => Done<Result> | string) => {
      const left_ms = trouble.from_ms + answer_ms_max - time.now_ms;
      node.clock.arrive(Math.max(0, Math.min(delay_ms, left_ms)), () => {
        if (isHeard) return;
        isHeard = true;
        trouble.to_ms = time.now_ms;
        const heard = delay_ms > left_ms ? "given up" : outcome();
        if (typeof heard !== "string") return resolve(heard);
        world.tell(() => `node ${node.name} is told of ${fate.id}: ${heard}`);
        reject(new Error(heard));
      });
    };
    const hearNothing = (why: string) => {
      if (node.cut && !fate.harmed) node.troubles.push(trouble);
      hear(fate.hangs || node.cut?.silent ? answer_ms_max : fate.answer_ms, () => why);
    };
    const carryOut = () => {
      if (store.down) return hear(1, () => "the store is away");
      const done = act(fate);
      const { crashes } = store;
      if (fate.unanswered || node.cut) return hearNothing("the answer was lost");
      const flush_ms = world.defects.store?.withoutBarrier ? 0 : fate.flush_ms;
      hear(flush_ms + fate.answer_ms, () =>
        done.entry.lost || store.crashes !== crashes ? "the store has crashed" : done,
      );
    };
    const arrive = (): void => {
      if (store.isStalled) world.in(store.stalledUntil_ms - time.now_ms, arrive);
      else carryOut();
    };

    if (fate.again_ms !== null) {
      world.in(fate.again_ms, () => {
        world.tell(() => `  ${fate.id} is carried out late`);
        if (!store.down && !store.isStalled) act(fate);
      });
    }
    if (fate.lost || node.cut) return hearNothing("lost");
    if (fate.arrive_ms >= answer_ms_max) hear(answer_ms_max, () => "given up");
    world.in(fate.arrive_ms, arrive);
  });
}

const nameOf = ({ verb, requestId }: Command) => `${verb}-${requestId.slice("req_".length)}`;

function inWordsOf({ lost, unanswered, again_ms, arrive_ms, answer_ms }: Fate): string {
  const words = [
    lost ? "lost" : "",
    unanswered ? "its answer is lost" : "",
    arrive_ms > 10 ? `arrives after ${arrive_ms} ms` : "",
    answer_ms > 10 ? `answered after ${answer_ms} ms` : "",
    again_ms === null ? "" : `carried out again after ${again_ms} ms`,
  ].filter((word) => word !== "");
  return words.length === 0 ? "" : ` (${words.join(", ")})`;
}

function inWords(command: Command): string {
  const of = `${command.verb} ${command.requestId}`;
  switch (command.verb) {
    case "admit":
      return `${of} for ${command.inputNanos} and ${command.outputTokens_min} to ${command.outputTokens} tokens`;
    case "grow":
      return `${of} to ${command.nanosTotal}, at least ${command.nanosTotal_min}`;
    case "checkpoint":
      return `${of} number ${command.number} at ${command.usage.outputTokens} tokens`;
    case "settle":
      return `${of} ${command.outcome} at ${command.nanos} with ${command.usage.outputTokens} tokens`;
  }
}

function answerInWords(answer: LedgerAnswer): string {
  switch (answer.answer) {
    case "granted":
      return `granted ${answer.nanos}`;
    case "late":
    case "settled":
      return `${answer.answer}, ${answer.charged} charged, ${answer.uncharged} not`;
    default:
      return answer.answer;
  }
}

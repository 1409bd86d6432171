/**
 * Sends notices to the destinations of organizations and operators (docs/notices.md), in the background. Every ten
 * seconds one node finds new notices, and every two seconds each node sends the notices that are due and that no other
 * node is sending.
 */
import { idleClock, passed, repeating } from "../../core/time/clock.ts";
import { deliver } from "./deliver.ts";
import { type MailServer, mailRound } from "./mail/smtp.ts";
import type { DueNotice, NewNotice, NoticeQueue } from "./store/notice.ts";

export interface NoticesParts {
  queue: NoticeQueue;
  conditions: Parameters<NoticeQueue["look"]>[0];
  allowsPrivate: () => boolean;
  /** The settings of the mail server. Null: the service sends no mail. */
  mailServer: () => MailServer | null;
  /** Called with the cause if the mail server cannot be used. */
  mailFailed(cause: unknown): void;
  /** The origin of the console; null: there is no console to link to. */
  consoleUrl: () => string | null;
  now_ms: () => number;
  failed(cause: unknown): void;
  /** Called when no further attempt will be made to deliver a notice. */
  givenUp(notice: DueNotice, problem: string): void;
  look_ms?: number;
  send_ms?: number;
}

const attempts_max = 12;
const first_again_ms = 10_000;
const again_ms_max = 4 * 3_600_000;
const at_once_max = 20;
/** The time limit for all mails of a round, far shorter than the lease of a notice. */
const mailWait_ms = 40_000;
const forget_ms = 3_600_000;
/**
 * The interval at which secrets in plain text, or encrypted with an older key, are encrypted. It is long: older versions
 * cannot read encrypted secrets, and by then no node of an older version runs after an upgrade.
 */
const seal_ms = 3_600_000;
const untold_max = 100;

/**
 * The wait before the next attempt; null: the last attempt has been made. All attempts together take about half a day.
 * Pure.
 */
export function nextAttempt_ms(attempts: number): number | null {
  return attempts >= attempts_max ? null : Math.min(first_again_ms * 2 ** (attempts - 1), again_ms_max);
}

export function notices(parts: NoticesParts) {
  const { queue, failed, look_ms = 10_000, send_ms = 2_000 } = parts;
  const untold = new Map<string, NewNotice>();
  const sending = new Map<string, Promise<void>>();
  const clock = idleClock();
  let isStopped = false;
  const safely = (work: () => Promise<void>) => () => work().catch(failed);
  const rounds = [
    repeating(safely(look), { every: look_ms }),
    repeating(safely(queue.forget), { every: forget_ms }),
    repeating(safely(queue.seal), { every: seal_ms }),
    repeating(safely(sendDue), { every: send_ms }),
  ];

  async function look(): Promise<void> {
    for (const [about, notice] of untold) {
      await queue.add(notice);
      untold.delete(about);
    }
    await queue.look(parts.conditions);
  }

  /**
   * Sends the notices that are due, round after round. A round that takes long continues while the next round begins.
   */
  async function sendDue(): Promise<void> {
    for (;;) {
      const room = at_once_max - sending.size;
      const due = isStopped || room === 0 ? [] : await queue.claim(room, [...sending.keys()]);
      if (due.length === 0) return;
      await Promise.race([sendRound(due), passed(clock, send_ms)]);
    }
  }

  async function sendRound(due: readonly DueNotice[]): Promise<void> {
    const server = parts.mailServer();
    const round = server && mailRound(server, { wait_ms: mailWait_ms, failed: parts.mailFailed });
    const mail = server && round && { round, domains: server.recipient_domains };
    const all = due.map((notice) => {
      const sent = sendOne(notice, mail)
        .catch(failed)
        .finally(() => sending.delete(notice.id));
      sending.set(notice.id, sent);
      return sent;
    });
    await Promise.all(all);
    round?.end();
  }

  async function sendOne(notice: DueNotice, mail: Parameters<typeof deliver>[1]["mail"]): Promise<void> {
    const delivery = await deliver(notice, {
      allowPrivate: parts.allowsPrivate(),
      consoleUrl: parts.consoleUrl(),
      now_ms: parts.now_ms(),
      mail,
    });
    const { problem, isFinal = false } = delivery;
    // A test notice gets no second attempt, because the administrator who sends it waits for its outcome.
    const again_ms = isFinal || notice.kind === "notice.test" ? null : nextAttempt_ms(notice.attempts);
    await queue.sent(notice, delivery, again_ms);
    if (problem !== null && again_ms === null) parts.givenUp(notice, problem);
  }

  return {
    /** Adds a notice for the operators. While the database is away, the notice waits in memory. */
    tell(notice: NewNotice): void {
      if (untold.size < untold_max) untold.set(notice.about, notice);
    },
    async stop(): Promise<void> {
      isStopped = true;
      await Promise.all(rounds.map((round) => round.stop()));
      await Promise.all(sending.values());
    },
  };
}

/**
 * Sends notices to organizations by webhook (docs/notices.md), in the background. Every ten seconds one node finds new
 * notices, and every two seconds each node sends those that are due and that no other node is sending.
 */
import type { DueNotice, NoticeQueue } from "../store/notice.ts";
import { repeating } from "../time/repeating.ts";
import { sendWebhook, signatureOf, type WebhookSettings } from "../upstream/webhook.ts";

export interface NoticesParts {
  queue: NoticeQueue;
  allowsPrivate: () => boolean;
  now_ms: () => number;
  failed(cause: unknown): void;
  /** Called when a notice is given up. */
  givenUp(notice: DueNotice, problem: string): void;
  look_ms?: number;
  send_ms?: number;
  /**
   * The interval at which secrets in plain text are sealed, the first time after the start: by then, nodes of an older
   * version, which cannot read sealed secrets, are gone.
   */
  seal_ms?: number;
}

const attempts_max = 12;
const first_again_ms = 10_000;
const again_ms_max = 4 * 3_600_000;
const at_once_max = 20;
const forget_ms = 3_600_000;
/** The time for one attempt, far shorter than the lease of a notice. */
const webhook_ms = 10_000;

/** The wait before the next attempt; null after the last. All attempts together take about half a day. Pure. */
export function nextAttempt_ms(attempts: number): number | null {
  return attempts >= attempts_max ? null : Math.min(first_again_ms * 2 ** (attempts - 1), again_ms_max);
}

export function notices(parts: NoticesParts): { stop(): Promise<void> } {
  const { queue, failed, look_ms = 10_000, send_ms = 2_000, seal_ms = 3_600_000 } = parts;
  let isStopped = false;
  const safely = (work: () => Promise<void>) => () => work().catch(failed);
  const rounds = [
    repeating(safely(queue.look), { every: look_ms }),
    repeating(safely(queue.forget), { every: forget_ms }),
    repeating(safely(queue.seal), { every: seal_ms }),
    repeating(safely(sendDue), { every: send_ms }),
  ];

  async function sendDue(): Promise<void> {
    for (;;) {
      const due = isStopped ? [] : await queue.claim(at_once_max);
      await Promise.all(due.map((notice) => sendOne(notice)));
      if (due.length < at_once_max) return;
    }
  }

  async function sendOne(notice: DueNotice): Promise<void> {
    const { secret } = notice;
    const problem =
      secret === null
        ? noSecret(notice)
        : await sendWebhook(requestOf({ ...notice, secret }, parts.now_ms()), settingsOf(parts));
    const again_ms = nextAttempt_ms(notice.attempts);
    await queue.sent(notice, problem, again_ms);
    if (problem !== null && again_ms === null) parts.givenUp(notice, problem);
  }

  return {
    async stop() {
      isStopped = true;
      await Promise.all(rounds.map((round) => round.stop()));
    },
  };
}

const noSecret = ({ organization }: DueNotice) =>
  `its secret was encrypted with another SLUICE_SECRET_KEY; for a new one, run: sluice notice set ${organization} --new-secret`;

const settingsOf = ({ allowsPrivate }: NoticesParts): WebhookSettings => ({
  allowPrivate: allowsPrivate(),
  wait_ms: webhook_ms,
});

function requestOf(
  { id, kind, organizationId, organization, createdAt, details, url, secret }: DueNotice & { secret: string },
  now_ms: number,
) {
  const body = JSON.stringify({
    id,
    type: kind,
    created_at: createdAt,
    organization_id: organizationId,
    organization,
    data: details,
  });
  const timestamp = String(Math.floor(now_ms / 1000));
  const headers = {
    "content-type": "application/json",
    "user-agent": "sluice",
    "sluice-notice-id": id,
    "sluice-timestamp": timestamp,
    "sluice-signature": signatureOf(secret, timestamp, body),
  };
  return { url, body, headers };
}

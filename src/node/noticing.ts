/** Starts the sending of notices to organizations and operators, with this node's settings (docs/notices.md). */
import { nodesOf } from "../admin/management/fleet-view.ts";
import { conditionsOf, strayAnswer } from "../features/notices/conditions.ts";
import { notices } from "../features/notices/sending.ts";
import { noticeQueue } from "../stores/postgres/notices.ts";
import { disposable, type Foundation } from "./foundation.ts";
import { sealingOf } from "./sealing.ts";

export function startNotices({ serving, settings, log, outage }: Foundation) {
  const { configuration, database } = serving;
  const ending = new AsyncDisposableStack();
  const sending = notices({
    queue: noticeQueue(database, sealingOf(settings.server)),
    conditions: (reports, now) => conditionsOf(nodesOf(reports), now),
    allowsPrivate: () => configuration.current().webhooks.allow_private,
    mailServer: () => configuration.current().smtp,
    mailFailed: outage("mail_unsent"),
    consoleUrl: () => configuration.current().identity?.consoleUrl ?? null,
    now_ms: Date.now,
    failed: outage("notices_unsent"),
    givenUp: ({ id, organizationId, destination }, problem) =>
      log.event("error", "notice_given_up", { notice: id, organization: organizationId, destination, problem }),
  });
  ending.defer(() => sending.stop());
  const strayed = (upstream: string) => sending.tell(strayAnswer(upstream, new Date()));
  return disposable({ strayed }, ending);
}

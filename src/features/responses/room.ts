/**
 * Removes the oldest answers of organizations that exceed their limit. Once a second, it checks all organizations with
 * new answers together, because each check reads every answer of its organization.
 */

import { type Clock, gathered } from "../../core/time/clock.ts";
import type { AnswerLogs } from "./store/answer-log.ts";
import type { KeptAnswers } from "./store/kept.ts";

const pause_ms = 1_000;

export interface StorageRoom {
  /** Requests a check of this organization, because it has a new answer. */
  ask(organizationId: string): void;
  /** Stops, and resolves when no check is running. */
  stop(): Promise<void>;
}

interface RoomParts {
  answers: Pick<KeptAnswers, "makeRoom">;
  logs: Pick<AnswerLogs, "remove">;
  organization_bytes_max(): number;
  failed(cause: unknown): void;
  clock?: Pick<Clock, "after">;
}

export function roomOf({ answers, logs, organization_bytes_max, failed, clock }: RoomParts): StorageRoom {
  const grown = new Set<string>();
  const looks = gathered(async () => {
    const due = [...grown];
    grown.clear();
    for (const organizationId of due) {
      try {
        await logs.remove(await answers.makeRoom(organizationId, organization_bytes_max()));
      } catch (cause) {
        failed(cause);
      }
    }
    return grown.size > 0 ? pause_ms : null;
  }, clock);

  return {
    ask(organizationId) {
      grown.add(organizationId);
      looks.ask(pause_ms);
    },
    stop: looks.stop,
  };
}

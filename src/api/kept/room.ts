/**
 * Removes the oldest answers of organizations whose answers take more than they may. It asks the store once a second for
 * all new answers, since each question reads every answer of its organization.
 */
import type { AnswerLogs } from "../../store/answer-log.ts";
import type { KeptAnswers } from "../../store/kept.ts";
import type { Clock } from "../../time/clock.ts";
import { gathered } from "../../time/gathered.ts";

const pause_ms = 1_000;

export interface Room {
  /** Asks for a look at this organization, whose answers have become more. */
  ask(organizationId: string): void;
  /** Stops. Resolves when no look is under way. */
  stop(): Promise<void>;
}

interface RoomParts {
  answers: Pick<KeptAnswers, "makeRoom">;
  logs: Pick<AnswerLogs, "remove">;
  organization_bytes_max(): number;
  failed(cause: unknown): void;
  clock?: Pick<Clock, "after">;
}

export function roomOf({ answers, logs, organization_bytes_max, failed, clock }: RoomParts): Room {
  const grown = new Set<string>();

  async function look(organizationId: string): Promise<void> {
    try {
      await logs.remove(await answers.makeRoom(organizationId, organization_bytes_max()));
    } catch (cause) {
      failed(cause);
    }
  }

  const looks = gathered(async () => {
    const due = [...grown];
    grown.clear();
    for (const organizationId of due) await look(organizationId);
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

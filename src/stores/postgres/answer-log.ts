/** Logs of answers over SQL, for nodes without Redis and for the embedded database. */

import { bare } from "../../core/store/ids.ts";
import type { AnswerLogs, Appended, LogEntry } from "../../features/responses/store/answer-log.ts";
import type { Querying } from "./database.ts";

/** The most entries of one read, so that no answer is in memory as a whole. */
const read_max = 64;

export function databaseLogs(db: Querying): AnswerLogs {
  return {
    async append({ requestId }, number, { text, isEnd }) {
      const [row] = await db.query<{ appended: Appended }>("select kept_answer_append($1, $2, $3, $4) as appended", [
        bare(requestId, "req_"),
        number,
        text,
        isEnd,
      ]);
      return row!.appended;
    },
    async read({ requestId }, from) {
      const rows = await db.query<LogEntry & { number: number }>(reading, [bare(requestId, "req_"), from, read_max]);
      if (rows.some(({ number }, index) => number !== from + index)) return "lost";
      return rows.map(({ text, isEnd }) => ({ text, isEnd }));
    },
    async remove(logs) {
      if (logs.length === 0) return;
      const ids = logs.map(({ requestId }) => bare(requestId, "req_"));
      await db.query("delete from kept_answer_entry where request_id = any($1::uuid[])", [ids]);
    },
  };
}

const reading = `
  select number, said as text, is_end as "isEnd" from kept_answer_entry
  where request_id = $1 and number >= $2 order by number limit $3`;

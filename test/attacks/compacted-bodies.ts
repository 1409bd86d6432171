// Attacks with conversations that are to be compacted or counted, as large and as odd as allowed. Dropping the older
// parts must cost little.

import type { Attack } from "./attack.ts";
import { type BodyOptions, body, filled, listed, mib, padded, paths } from "./body.ts";

const { responses, compact, tokens } = paths;
const trigger = '{"type":"compaction_trigger"}';

export const compactedBodies: readonly Attack[] = [4, 30].flatMap(ofSize);

function ofSize(size_mib: number): Attack[] {
  const bytes = size_mib * mib;
  const turns_max = Math.min(99_999, bytes / 100);
  const one = (name: string, options: BodyOptions, items: string) =>
    body(`${name}, ${size_mib} MiB`, { isQuick: size_mib === 4, ...options }, (model) =>
      padded(`{"model":"${model}","store":false,"input":[${items}]}`, bytes),
    );
  const said = (text: string) => `{"role":"user","content":"${text}"}`;
  const talk = listed(turns_max - 1, (at) => said(`${at}`));
  const sealed = (text: string) => `{"type":"compaction","encrypted_content":"compaction.1:${text}"}`;
  const call = '{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}';
  const result = '{"type":"function_call_output","call_id":"c","output":"x"}';
  const long = said(filled("hello world ", bytes - 1000));
  const summary = sealed(filled("hello world ", bytes - 1000));
  return [
    one("short items to compact", { path: responses }, `${talk},${trigger}`),
    one("short items to compact at once", { path: compact }, talk),
    one(
      "calls and results of one id to compact",
      { path: compact },
      listed(turns_max / 2, () => `${call},${result}`),
    ),
    one("one message to compact", { path: responses }, `${long},${trigger}`),
    one(
      "messages to compact",
      { path: compact },
      listed(100, () => said(filled("hello world ", bytes / 110))),
    ),
    one("a summary", { path: responses }, summary),
    one("a summary to compact", { path: compact }, summary),
    one(
      "many summaries to compact",
      // In the prompt for the engine, each of these items is introduced as a summary, which doubles its characters.
      { path: compact, isQuick: false, grows: 2 },
      listed(turns_max, (at) => sealed(`${at}`)),
    ),
    one("a mark and blanks", { path: responses, wanted: "400 invalid_value" }, sealed(filled(" ", bytes - 1000))),
    one(
      "many triggers",
      { path: responses, wanted: "400 invalid_value" },
      listed(turns_max, () => trigger),
    ),
    one("short items, counted twice", { path: tokens, parallel: 2 }, talk),
    one("a summary, counted", { path: tokens }, summary),
  ];
}

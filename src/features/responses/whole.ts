/** Answers a kept request without streaming. The answer is stored before its run is settled. */
import { jsonText } from "../../core/http/json.ts";
import { endsAfter } from "../../core/http/stream.ts";
import type { InferenceEvent } from "../../core/inference/event.ts";
import { collect, type Result } from "../../core/inference/result.ts";
import type { Keeping } from "./keeping.ts";

export async function keptWhole(
  events: AsyncGenerator<readonly InferenceEvent[], void, void>,
  headers: Record<string, string>,
  keeping: Keeping,
  replyOf: (result: Result) => Promise<unknown>,
): Promise<Response> {
  let text = "";
  const stored = async (result: Result) => {
    text = JSON.stringify(await replyOf(result));
    keeping.write(text);
    await keeping.end();
  };
  await collect(endsAfter(events, stored));
  return jsonText(200, text, headers);
}

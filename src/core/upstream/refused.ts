/** Reads an engine's refusal, and makes it a fault, or sends the request again without what the engine refuses. */
import { Fault } from "../inference/fault.ts";
import type { InferenceRequest } from "../inference/request.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { dialects } from "../protocol/dialects.ts";
import { compact } from "../protocol/json.ts";
import { withoutRefused } from "../protocol/refused-field.ts";
import { type AttemptEnd, kindOfRefusal, retryAfterOf } from "./attempt.ts";
import { readAtMost } from "./body.ts";
import { parseLarge } from "./engine-json.ts";
import type { Reply } from "./http1/exchange.ts";
import { type Line, type Sending, send } from "./send.ts";

const refusal_bytes_max = 64 * 1024;

export interface EngineRefusal {
  fault: Fault;
  end: AttemptEnd;
  /** The dialect or the request that the engine may accept, if it refused only a part that is not essential; else null. */
  lesser: { dialect?: Dialect; request?: InferenceRequest } | null;
}

/**
 * Sends the request, and again without each part that the engine refuses and that is not essential. `replied` is called
 * with each reply. `refuses` is called only with a dialect with which the engine then answered: a refusal alone proves
 * nothing, because it may quote a caller's own words. Nor is it called with a changed request, whose signatures of
 * reasoning are wrong in this conversation alone.
 */
export async function sendWithLess(
  question: Sending & { refuses?(lesser: Dialect): void },
  line: Line,
  replied: (reply: Reply) => void,
): Promise<{ reply: Reply; refusal: EngineRefusal | null }> {
  let lesser: Dialect | undefined;
  for (let asked: Sending = question; ; ) {
    const reply = await send(asked, line);
    replied(reply);
    const refusal = reply.status === 200 ? null : await engineRefusal(reply, asked);
    if (!refusal && lesser) question.refuses?.(lesser);
    if (!refusal?.lesser) return { reply, refusal };
    question.lost?.("refused");
    lesser = refusal.lesser.dialect ?? lesser;
    asked = { ...asked, ...refusal.lesser, own: null };
  }
}

export async function engineRefusal(
  reply: Reply,
  { codec, request, dialect = dialects.generic }: Pick<Sending, "codec" | "request" | "dialect">,
): Promise<EngineRefusal> {
  const { status } = reply;
  const text = await readAtMost(reply, refusal_bytes_max).catch(() => "");
  // If an engine's proxy answers in HTML, the text stays unparsed: the status says enough.
  const body = await parseLarge(text).catch(() => text);
  const fault = codec.fault.decode(status, body, dialect);
  const lesser = withoutRefused({ request, dialect }, status, body);
  const end: AttemptEnd = {
    kind: kindOfRefusal(status, fault),
    status,
    ...compact({ said: fault.details.engineText }),
  };
  const wait_s = retryAfterOf(reply);
  if (wait_s === null) return { fault, end, lesser };
  const details = { ...fault.details, retryAfterSeconds: Math.min(60, Math.max(1, Math.ceil(wait_s))) };
  return {
    fault: new Fault(fault.code, fault.message, details),
    end: { ...end, retryAfter_ms: wait_s * 1000 },
    lesser,
  };
}

/** Reads an engine's refusal, and makes it a fault. */
import { Fault } from "../inference/fault.ts";
import type { Dialect } from "../protocol/dialect.ts";
import { dialects } from "../protocol/dialects.ts";
import { compact } from "../protocol/json.ts";
import { withoutRefusedField } from "../protocol/refused-field.ts";
import { type AttemptEnd, kindOfRefusal, retryAfterOf } from "./attempt.ts";
import { readAtMost } from "./body.ts";
import { parseLarge } from "./engine-json.ts";
import type { Reply } from "./http1/exchange.ts";
import type { Sending } from "./send.ts";

/** The most bytes of a refusal that are read. */
const refusal_bytes_max = 64 * 1024;

export interface EngineRefusal {
  fault: Fault;
  end: AttemptEnd;
  /**
   * The dialect in which the engine may accept the request after all, because it refused only a field that is not
   * essential; else null.
   */
  lesser: Dialect | null;
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
  const lesser = withoutRefusedField(dialect, request, status, body);
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

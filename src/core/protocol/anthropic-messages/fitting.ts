/**
 * Fits a request of another protocol to Anthropic's API, which has rules between the fields of a request that other services
 * do not have. Clients of the API itself know the rules.
 */
import type { AssistantPart, InferenceRequest, Turn } from "../../inference/request.ts";
import { isCall, withInstructionsAtHead } from "../../inference/turns.ts";
import type { Loss } from "../codec.ts";
import { compact } from "../json.ts";
import { isProven } from "../refused-field.ts";
import { closed } from "../tool-schema.ts";

export function fitted(request: InferenceRequest, lost?: (loss: Loss) => void): InferenceRequest {
  const { turns, tools, format, reasoning, toolChoice: choice } = request;
  const { temperature, topP, ...sampling } = request.sampling;
  // Models refuse `temperature` and `top_p` together. The default of each is 1.
  const top = topP === 1 ? undefined : topP;
  const heat = temperature === 1 && top !== undefined ? undefined : temperature;
  const placed = withInstructionsAtHead(turns);
  const fits: InferenceRequest = {
    ...request,
    sampling: { ...sampling, ...compact({ temperature: heat, topP: top }) },
    // Most models refuse instructions after the conversation's beginning. Others accept them only before a turn of the
    // model.
    turns: request.continues ? placed : withAsker(placed),
    tools: tools.map((tool) => (tool.strict ? { ...tool, parameters: closed(tool.parameters ?? noArguments) } : tool)),
  };
  if (format?.kind === "json_schema" && format.schema) fits.format = { ...format, schema: closed(format.schema) };
  // Models that think refuse a forced tool call, or do not make it. Of the two settings the effort is only a hint, so
  // it goes.
  const mode = choice?.kind === "allowed" ? choice.mode : choice?.kind;
  const isForced = tools.length > 0 && (mode === "required" || mode === "tool");
  if (isForced && reasoning?.effort && reasoning.effort !== "none") {
    lost?.("stripped");
    delete fits.reasoning;
  }
  return fits;
}

/**
 * The turns, with a turn of the user added if the last is an answer: the model would continue its last sentence, or
 * refuse.
 */
function withAsker(turns: Turn[]): Turn[] {
  const last = turns.findLast(({ role, parts }) => role !== "assistant" || parts.some(isSent));
  if (last?.role !== "assistant" || last.parts.some(isCall)) return turns;
  return [...turns, { role: "user", parts: [{ kind: "text", text: "Continue." }] }];
}

/** Whether something of the part is sent (encode-turns.ts): neither a blank text nor a thought that nobody signed. */
function isSent(part: AssistantPart): boolean {
  if (part.kind === "reasoning") return isProven(part);
  return part.kind === "tool-call" || part.text.trim() !== "";
}

const noArguments = { type: "object", properties: {} };

/**
 * Fits a request of another protocol to Anthropic's API, which has rules between the fields of a request that other services
 * do not have. Clients of the API itself know the rules.
 */
import type { InferenceRequest, Turn } from "../../inference/request.ts";
import { isCall, withInstructionsAtHead } from "../../inference/turns.ts";
import { compact } from "../json.ts";
import { closed } from "../tool-schema.ts";

export function fitted(request: InferenceRequest): InferenceRequest {
  const { turns, tools, format } = request;
  const { temperature, topP, ...sampling } = request.sampling;
  // Models refuse both together. 1 is the value of either if it is left out.
  const top = topP === 1 ? undefined : topP;
  const heat = temperature === 1 && top !== undefined ? undefined : temperature;
  const placed = withInstructionsAtHead(turns);
  const fits: InferenceRequest = {
    ...request,
    sampling: { ...sampling, ...compact({ temperature: heat, topP: top }) },
    // Most models refuse instructions after the head. Others take them before the model's turn alone.
    turns: request.continues ? placed : withAsker(placed),
    tools: tools.map((tool) => (tool.strict ? { ...tool, parameters: closed(tool.parameters ?? noArguments) } : tool)),
  };
  if (format?.kind === "json_schema" && format.schema) fits.format = { ...format, schema: closed(format.schema) };
  return fits;
}

/** The turns with one of the user at the end. The model would go on within its last sentence, or refuse to. */
function withAsker(turns: Turn[]): Turn[] {
  const last = turns.at(-1);
  if (last?.role !== "assistant" || last.parts.some(isCall)) return turns;
  return [...turns, { role: "user", parts: [{ kind: "text", text: "Continue." }] }];
}

const noArguments = { type: "object", properties: {} };

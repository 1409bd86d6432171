// Types of the parts of the installed packages that the checks use. They are declared here because the packages are not
// installed when types are checked.

import type { z } from "zod";

interface ToolOf<Arguments> {
  description: string;
  execute: (given: Arguments) => Promise<string>;
}
type City = { city: string };

interface AiPart {
  type: string;
  text?: string;
  error?: unknown;
  finishReason?: string;
}

export interface AiCall {
  model: unknown;
  prompt: string;
  tools?: Record<string, unknown>;
  stopWhen?: unknown;
  output?: unknown;
  maxRetries?: number;
  providerOptions?: { openai: Record<string, unknown> };
  onError?: (told: { error: unknown }) => void;
}

export interface AiSdk {
  streamText(call: AiCall): {
    fullStream: AsyncIterable<AiPart>;
    text: Promise<string>;
    steps: Promise<unknown[]>;
    usage: Promise<{ inputTokens: number; outputTokens: number }>;
  };
  generateText(call: AiCall): Promise<{ text: string; steps: { reasoningText?: string }[]; output: unknown }>;
  tool(tool: ToolOf<City> & { inputSchema: z.ZodType }): unknown;
  stepCountIs(count: number): unknown;
  Output: { object(of: { schema: z.ZodType }): unknown };
}

export interface AiOpenai {
  createOpenAI(options: { baseURL: string; apiKey: string }): { responses(model: string): unknown };
}

interface AgentOptions {
  name: string;
  instructions: string;
  model: string;
  tools?: unknown[];
  handoffs?: object[];
  outputType?: z.ZodType;
}

interface AgentRun {
  finalOutput: unknown;
  lastResponseId: string;
  lastAgent: { name: string };
}

export interface AgentsSdk {
  Agent: new (options: AgentOptions) => object;
  OpenAIProvider: new (options: { baseURL: string; apiKey: string; useResponses: boolean }) => object;
  Runner: new (options: {
    modelProvider: object;
    tracingDisabled: boolean;
  }) => {
    run(agent: object, input: string, options?: { previousResponseId?: string }): Promise<AgentRun>;
    run(
      agent: object,
      input: string,
      options: { stream: true },
    ): Promise<AgentRun & { completed: Promise<void>; toTextStream(): AsyncIterable<string> }>;
  };
  tool(tool: ToolOf<City> & { name: string; parameters: z.ZodType }): unknown;
}

export const fetched = <Package>(name: string): Promise<Package> =>
  import(Bun.resolveSync(name, process.env.AI_PACKAGES ?? ".cache/clients/ai"));

/**
 * The rows of the table of charges: engines that report their usage, each in its dialect, and engines that never do.
 */
import { type Teller, tellers } from "./reports.ts";

export interface Row {
  name: string;
  /** The form of the engine's usage report; null if the engine never reports. */
  report: Teller | null;
  /** Whether each chunk reports the tokens generated so far. */
  isRunning: boolean;
  /** The number of tokens in one delta. */
  tokens_per_delta: number;
  /** The parts of a response. */
  parts: "text" | "reasoning and text" | "reasoning and a call";
  /**
   * Numbers of tokens in the report: `cached`, read from the prompt cache; `written`, written to it; and `hidden`, of
   * reasoning that the response does not show.
   */
  cached: number;
  written: number;
  hidden: number;
}

const plain: Row = {
  name: "",
  report: tellers.openai,
  isRunning: false,
  tokens_per_delta: 1,
  parts: "text",
  cached: 0,
  written: 0,
  hidden: 0,
};

const row = (name: string, change: Partial<Row>): Row => ({ ...plain, name, ...change });

export const rows: Row[] = [
  row("OpenAI and the usual ones", { cached: 800, written: 100, hidden: 50 }),
  row("the same, four tokens a delta", { tokens_per_delta: 4 }),
  row("DeepSeek", { report: tellers.deepseek, cached: 800, hidden: 50 }),
  row("vLLM, thinking told apart", { parts: "reasoning and text", cached: 800 }),
  row("the same, three tokens a delta", { parts: "reasoning and text", tokens_per_delta: 3 }),
  row("Moonshot", { report: tellers.moonshot, cached: 800 }),
  row("Moonshot, in the choice", { report: tellers["moonshot, in the choice"], cached: 800 }),
  row("DashScope", { report: tellers.dashscope, cached: 100, written: 900, hidden: 50 }),
  row("Groq", { report: tellers.groq }),
  row("xAI", { report: tellers.xai, cached: 800, hidden: 90 }),
  row("Gemini", { report: tellers.gemini, hidden: 90 }),
  row("llama.cpp", { report: tellers["llama.cpp"], cached: 800 }),
  row("llama.cpp, timings_per_token", {
    report: tellers["llama.cpp, timings_per_token"],
    cached: 800,
    isRunning: true,
  }),
  row("no report, a token a delta", { report: null }),
  row("no report, four tokens a delta", { report: null, tokens_per_delta: 4 }),
  row("no report, thirty tokens a delta", { report: null, tokens_per_delta: 30 }),
  row("no report, reasoning and a call", { report: null, tokens_per_delta: 3, parts: "reasoning and a call" }),
];

/** The rows that `npm test` runs, enough to cover each rule. */
export const sampledRows = [0, 1, 3, 9, 10, 12, 14, 16].map((at) => rows[at]!);

/** `sluice try`: sends one message to a model and shows the answer and the receipt. */
import type { Command } from "commander";
import { grouped, inWords } from "../../core/inference/money.ts";
import { SseDecoder } from "../../core/sse/decode.ts";
import { windowKinds } from "../../core/store/ledger.ts";
import type { RequestReceipt } from "../../features/receipts/receipt-shape.ts";
import { jsonOf } from "./calling.ts";
import { type JsonFlag, jsonOption, printJson } from "./option.ts";
import type { CommandContext } from "./services.ts";
import { facts } from "./table.ts";
import { type TryEntrance, type TryPlace, tryEntrance } from "./try-entrance.ts";
import { type Trial, trialOf } from "./try-kinds.ts";

interface TryOptions extends JsonFlag, TryPlace {
  message: string;
  document: string[];
}

/** The longest wait for the receipt, which is complete when the request is settled, a moment after its answer. */
const settled_ms_max = 10_000;
const again_ms = 100;

export function addTryCommand(program: Command, { services }: CommandContext): void {
  program
    .command("try")
    .description("send a text to a model of any kind, and show its answer and its receipt")
    .argument("[model]", "ID of the model (default: the first that the server lists)")
    .option("--message <text>", "the message, prompt, query, or text to embed", "Say hello in one sentence.")
    .option("--document <text>", "a document to rank; repeatable", (one, all: string[]) => [...all, one], [])
    .option("--at <url>", "the server (default: where you signed in last)")
    .option("--key <id>", "ID of the key as which an operator tries the model, here or with --server")
    .addOption(jsonOption())
    .addHelpText("after", help)
    .action(async (named: string | undefined, options: TryOptions) => {
      const entrance = await tryEntrance(services, options);
      const model = named ?? (await firstModel(entrance));
      const { terminal } = services;
      const tried = { model, message: options.message, documents: options.document };
      const trial = trialOf[await entrance.kindOf(model)](tried);
      const answer = await answered(entrance, trial, (text) => {
        if (!options.json) terminal.out(text);
      });
      const receipt = await receiptOf(entrance, answer.request);
      if (options.json) return printJson(terminal, { model, text: answer.text, request_id: answer.request, receipt });
      terminal.out(`\n\n${facts(terminal, receiptFacts(answer.request, receipt))}`);
      if (answer.failure !== null) throw new Error(answer.failure);
    });
}

async function firstModel(entrance: TryEntrance): Promise<string> {
  const first = await entrance.firstModel();
  if (first === null) throw new Error("Name a model: sluice try MODEL");
  return first;
}

interface TryAnswer {
  text: string;
  request: string | null;
  /** The reason why the answer is incomplete; null: it is complete. */
  failure: string | null;
}

/**
 * Sends the request, passes the answer's text to `onText` part by part, and returns the whole answer. Throws an Error
 * if the request is refused.
 */
async function answered(
  entrance: TryEntrance,
  { path, body, isStreamed, textOf }: Trial,
  onText: (text: string) => void,
): Promise<TryAnswer> {
  const response = await entrance.ask(path, JSON.stringify(body));
  const request = response.headers.get("x-service-request-id");
  if (!response.ok || !response.body)
    throw new Error(refusalIn(await jsonOf(response), response.status, entrance.server));
  if (!isStreamed) {
    const text = textOf(await response.json());
    onText(text);
    return { text, request, failure: null };
  }
  const decoder = new SseDecoder();
  let text = "";
  for await (const chunk of response.body)
    for (const { data } of decoder.push(chunk)) {
      if (data === "[DONE]") return { text, request, failure: null };
      const event = JSON.parse(data);
      if (event.error) return { text, request, failure: event.error.message };
      const part = textOf(event);
      text += part;
      onText(part);
    }
  return { text, request, failure: "The answer broke off." };
}

function refusalIn(body: unknown, status: number, server: string): string {
  const { error } = (body ?? {}) as { error?: { message?: unknown } };
  return typeof error?.message === "string" ? error.message : `${server} answered ${status}.`;
}

/** The receipt of the request. Null if the caller may not read it. */
async function receiptOf(entrance: TryEntrance, request: string | null): Promise<RequestReceipt | null> {
  const until_ms = performance.now() + settled_ms_max;
  while (request !== null) {
    const receipt = await entrance.receiptOf(request);
    if (receipt === "forbidden") return null;
    if (receipt !== "unsettled") return receipt;
    if (performance.now() > until_ms) return null;
    await Bun.sleep(again_ms);
  }
  return null;
}

function receiptFacts(request: string | null, receipt: RequestReceipt | null): (readonly [string, string | null])[] {
  if (!receipt)
    return [
      ["request", request],
      ["receipt", "not to be read by this key: it lacks the scope usage:read"],
    ];
  const { usage, cost, windows, created_at, ended_at } = receipt;
  const reasoning = usage.reasoning_tokens > 0 ? ` (${usage.reasoning_tokens} reasoning)` : "";
  return [
    ["request", receipt.id],
    ["model", receipt.model],
    ["outcome", [receipt.outcome, receipt.error_code].filter(Boolean).join(": ")],
    ["took", ended_at && `${grouped(Date.parse(ended_at) - Date.parse(created_at))} ms`],
    ["tokens", `${usage.input_tokens + usage.cached_input_tokens} in, ${usage.output_tokens} out${reasoning}`],
    ["searches", usage.searches > 0 ? grouped(usage.searches) : null],
    ["cost", `${inWords(cost.charged)} charged`],
    ...windowKinds.map((kind) => {
      const { usage_percent_before: before, usage_percent_after: after } = windows?.[kind] ?? {};
      return [kind, before === undefined ? null : `${before} % → ${after ?? before} %`] as const;
    }),
  ];
}

const help = `
The request counts for the signed-in caller (sluice login): a person, or the
stored key. With --key, an operator tries a model as a key of an organization,
without needing its secret: on the machine of a running server with the
embedded database, or with --server. It is charged like any request.
A model that embeds, ranks or completes prompts is asked for that.

Examples:
  $ sluice try
  $ sluice try acme/writer-1 --message "What is a token?"
  $ sluice try acme/embed-1 --message "The tide is out."
  $ sluice try acme/rank-1 --message "When?" --document "At noon." --document "In Oslo."
  $ sluice try acme/writer-1 --key key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d
  $ sluice --server https://sluice.example:9090 try acme/writer-1 --key key_0192f0c1d2e37a4b8c9d0e1f2a3b4c5d`;

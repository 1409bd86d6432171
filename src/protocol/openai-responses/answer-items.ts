/** A part of an answer → the item that a client reads: the same in the stream, in the final object and without a stream. */
import { compact } from "../../inference/compact.ts";
import type { TokenLogprob } from "../../inference/event.ts";
import type { ResultPart } from "../../inference/result.ts";
import { customInputOf } from "../custom-tool.ts";
import type { AnswerItem, ItemStatus, ResponsesLogprob, ResponsesRequest } from "./contract.ts";
import { decodeLogprobs, summaryWish } from "./decode-request.ts";
import { conversationOf, itemIdOf } from "./references.ts";
import { seal } from "./sealed-reasoning.ts";
import { listedTools, namespaceOf, ToolBook } from "./tools.ts";

export type ItemKind = AnswerItem["type"];

/** What a call is to the caller: the names that it knows, whatever the engine was told. */
export interface CallerCall {
  call_id: string;
  name: string;
  namespace?: string;
  custom: boolean;
  /** The engine wrote JSON around the plain text of a custom tool. */
  wrapped: boolean;
}

export class AnswerItems {
  readonly #book: ToolBook;
  readonly #logprobs: { top: number } | undefined;
  readonly #keepsText: boolean;
  /** Clients that ask for a summary of reasoning show nothing else of it. */
  readonly tellsSummary: boolean;

  constructor(
    wire: ResponsesRequest,
    readonly responseId: string,
    readonly model: string,
  ) {
    this.#book = new ToolBook(listedTools(wire, conversationOf(wire)));
    this.#logprobs = decodeLogprobs(wire);
    this.tellsSummary = summaryWish(wire) !== null;
    this.#keepsText = wire.include?.includes("reasoning.encrypted_content") === true;
  }

  kindOf(head: ResultPart["head"]): ItemKind {
    switch (head.kind) {
      case "text":
      case "refusal":
        return "message";
      case "reasoning":
        return "reasoning";
      case "tool-call":
        return this.callOf(head).custom ? "custom_tool_call" : "function_call";
    }
  }

  idOf(head: ResultPart["head"], index: number): string {
    return itemIdOf(this.responseId, this.kindOf(head), index);
  }

  /** An engine that knows namespaces names them itself. */
  callOf(head: Extract<ResultPart["head"], { kind: "tool-call" }>): CallerCall {
    const told = head.namespace === undefined ? this.#book.told(head.toolName) : undefined;
    const namespace = told ? namespaceOf(told) : head.namespace;
    const custom = told ? told.tool.type === "custom" : head.custom === true;
    return {
      call_id: head.callId,
      name: told?.tool.name ?? head.toolName,
      ...(namespace === undefined ? {} : { namespace }),
      custom,
      wrapped: custom && head.custom !== true,
    };
  }

  /** Engines give probabilities and alternatives by their own default: what is shown is what was asked for. */
  logprobsOf(logprobs: readonly TokenLogprob[] | undefined): ResponsesLogprob[] {
    const asked = this.#logprobs;
    if (!asked || !logprobs) return [];
    const publicToken = ({ token, logprob, bytes }: Omit<TokenLogprob, "top_logprobs">) => ({
      token,
      logprob,
      bytes: bytes ?? [],
    });
    return logprobs.map((one) => ({
      ...publicToken(one),
      top_logprobs: one.top_logprobs.slice(0, asked.top).map(publicToken),
    }));
  }

  itemOf(part: ResultPart, index: number, status: ItemStatus): AnswerItem {
    const { head, text } = part;
    const id = this.idOf(head, index);
    switch (head.kind) {
      case "text": {
        const logprobs = this.logprobsOf(part.logprobs);
        const content = [{ type: "output_text" as const, text, annotations: [], logprobs }];
        return { id, type: "message", status, role: "assistant", content };
      }
      case "refusal":
        return { id, type: "message", status, role: "assistant", content: [{ type: "refusal", refusal: text }] };
      case "reasoning": {
        const sealed = this.#sealed(part, head.encrypted);
        const said = text !== "";
        return {
          id,
          type: "reasoning",
          status,
          summary: said && this.tellsSummary ? [{ type: "summary_text", text }] : [],
          content: said && !this.tellsSummary ? [{ type: "reasoning_text", text }] : [],
          ...(sealed === undefined ? {} : { encrypted_content: sealed }),
        };
      }
      case "tool-call": {
        const { call_id, name, namespace, custom, wrapped } = this.callOf(head);
        const within = namespace === undefined ? {} : { namespace };
        if (!custom) return { id, type: "function_call", status, call_id, name, arguments: text, ...within };
        const input = wrapped ? customInputOf(text) : text;
        return { id, type: "custom_tool_call", status, call_id, name, input, ...within };
      }
    }
  }

  #sealed({ text, signature }: ResultPart, encrypted: string | undefined): string | undefined {
    if (signature === undefined && encrypted === undefined && !(this.#keepsText && text !== "")) return undefined;
    return seal(this.model, text, compact({ signature, encrypted }));
  }
}

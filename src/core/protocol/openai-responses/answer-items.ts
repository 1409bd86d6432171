/**
 * Writes the parts of an answer as items, in the same form in the stream, in its final object and in an answer that is
 * not streamed.
 */
import type { TokenLogprob } from "../../inference/event.ts";
import type { ResultPart } from "../../inference/result.ts";
import { customInputOf } from "../custom-tool.ts";
import { compact } from "../json.ts";
import type { AnswerItem, ItemStatus, ResponsesLogprob, ResponsesRequest } from "./contract.ts";
import { decodeLogprobs, summaryWish } from "./decode-request.ts";
import { conversationOf, itemIdOf } from "./references.ts";
import { seal } from "./sealed.ts";
import { listedTools, namespaceOf, ToolBook } from "./tools.ts";

type ItemKind = AnswerItem["type"];

/** A call under the names that the caller gave its tools. */
export interface CallerCall {
  call_id: string;
  name: string;
  namespace?: string;
  custom: boolean;
  /** Whether the engine wrote the plain text of a custom tool inside JSON. */
  wrapped: boolean;
}

export class AnswerItems {
  readonly #wire: ResponsesRequest;
  /**
   * Maps the names by which the engine knows the tools to the caller's names. Made at the first call: most answers have
   * no calls, and making the map costs more than the rest of a short answer.
   */
  #made: ToolBook | null = null;
  readonly #logprobs: { top: number } | undefined;
  readonly #keepsText: boolean;
  /** Whether reasoning is written as a summary: clients that ask for a summary show no other reasoning. */
  readonly writesSummary: boolean;

  constructor(
    wire: ResponsesRequest,
    readonly responseId: string,
    readonly model: string,
  ) {
    this.#wire = wire;
    this.#logprobs = decodeLogprobs(wire);
    this.writesSummary = summaryWish(wire) !== null;
    this.#keepsText = wire.include?.includes("reasoning.encrypted_content") === true;
  }

  get #book(): ToolBook {
    this.#made ??= new ToolBook(listedTools(this.#wire, conversationOf(this.#wire)));
    return this.#made;
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

  /** The call under the caller's names. An engine that knows namespaces already uses the caller's names. */
  callOf(head: Extract<ResultPart["head"], { kind: "tool-call" }>): CallerCall {
    const listed = head.namespace === undefined ? this.#book.toolOf(head.toolName) : undefined;
    const namespace = listed ? namespaceOf(listed) : head.namespace;
    const custom = listed ? listed.tool.type === "custom" : head.custom === true;
    return {
      call_id: head.callId,
      name: listed?.tool.name ?? head.toolName,
      ...(namespace === undefined ? {} : { namespace }),
      custom,
      wrapped: custom && head.custom !== true,
    };
  }

  /**
   * The log probabilities as the caller asked for them. Some engines send log probabilities unasked, or more
   * alternatives than were asked for.
   */
  logprobsOf(logprobs: readonly TokenLogprob[] | undefined): ResponsesLogprob[] {
    const requested = this.#logprobs;
    if (!requested || !logprobs) return [];
    const publicToken = ({ token, logprob, bytes }: Omit<TokenLogprob, "top_logprobs">) => ({
      token,
      logprob,
      bytes: bytes ?? [],
    });
    return logprobs.map((one) => ({
      ...publicToken(one),
      top_logprobs: one.top_logprobs.slice(0, requested.top).map(publicToken),
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
        const hasText = text !== "";
        return {
          id,
          type: "reasoning",
          status,
          summary: hasText && this.writesSummary ? [{ type: "summary_text", text }] : [],
          content: hasText && !this.writesSummary ? [{ type: "reasoning_text", text }] : [],
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

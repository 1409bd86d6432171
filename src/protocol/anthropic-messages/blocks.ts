/** One part of an answer on its way to become a block: what has come of it and was not written yet. */
import type { PartHead } from "../../inference/event.ts";
import type { Native } from "../../inference/request.ts";
import { ToolInput } from "../tool-input.ts";
import { citationsOf } from "./citations.ts";
import type { ContentBlock, ContentBlockDelta } from "./contract.ts";
import type { MessageWriter } from "./message-writer.ts";
import { unsigned } from "./signature.ts";

export function blockOf(head: PartHead): Block {
  switch (head.kind) {
    case "text":
    case "refusal":
      return new TextPiece();
    case "reasoning":
      return head.encrypted === undefined ? new ThinkingPiece() : new RedactedPiece(head.encrypted);
    case "tool-call":
      return new ToolPiece(head.callId, head.toolName);
  }
}

export abstract class Block {
  /** Written to its end. */
  done = false;
  protected pending = "";
  protected ended = false;
  #opened = false;

  protected abstract head(): ContentBlock;
  protected abstract said(pending: string): ContentBlockDelta;

  add(delta: string): void {
    if (!this.ended) this.pending += delta;
  }

  end(_signature?: string, _citations?: readonly Native[]): void {
    this.ended = true;
  }

  write(writer: MessageWriter): void {
    if (!this.#opened && this.worthOpening()) {
      this.#opened = true;
      writer.open(this.head());
    }
    if (this.pending !== "") writer.delta(this.said(this.pending));
    this.pending = "";
    if (this.done || !this.complete()) return;
    this.done = true;
    if (!this.#opened) return;
    for (const delta of this.last()) writer.delta(delta);
    writer.close();
  }

  protected worthOpening(): boolean {
    return true;
  }

  protected complete(): boolean {
    return this.ended;
  }

  /** What comes before the block's stop. */
  protected last(): ContentBlockDelta[] {
    return [];
  }
}

/** An empty text is no block: clients that send it back would be refused for it. */
class TextPiece extends Block {
  #citations: readonly Native[] = [];

  protected head = (): ContentBlock => ({ type: "text", text: "" });
  protected said = (text: string): ContentBlockDelta => ({ type: "text_delta", text });

  override end(_signature?: string, citations: readonly Native[] = []): void {
    if (!this.ended) this.#citations = citations;
    this.ended = true;
  }

  protected override worthOpening(): boolean {
    return this.pending !== "";
  }

  protected override last(): ContentBlockDelta[] {
    return citationsOf(this.#citations).map((citation) => ({ type: "citations_delta", citation }));
  }
}

class ThinkingPiece extends Block {
  #signature = unsigned;

  protected head = (): ContentBlock => ({ type: "thinking", thinking: "", signature: "" });
  protected said = (thinking: string): ContentBlockDelta => ({ type: "thinking_delta", thinking });

  override end(signature: string = unsigned): void {
    if (!this.ended) this.#signature = signature;
    this.ended = true;
  }

  /** Whole, and in one: clients replace, they do not append. */
  protected override last(): ContentBlockDelta[] {
    return this.#signature === "" ? [] : [{ type: "signature_delta", signature: this.#signature }];
  }
}

class RedactedPiece extends Block {
  constructor(readonly data: string) {
    super();
  }
  protected head = (): ContentBlock => ({ type: "redacted_thinking", data: this.data });
  protected said = (thinking: string): ContentBlockDelta => ({ type: "thinking_delta", thinking });

  override add(): void {}
}

/** Ends with its arguments, whether or not the engine has said so: the next call need not wait for the whole answer. */
class ToolPiece extends Block {
  readonly #input = new ToolInput();

  constructor(
    readonly id: string,
    readonly name: string,
  ) {
    super();
  }
  protected head = (): ContentBlock => ({ type: "tool_use", id: this.id, name: this.name, input: {} });
  protected said = (partial_json: string): ContentBlockDelta => ({ type: "input_json_delta", partial_json });

  override add(delta: string): void {
    super.add(this.#input.push(delta));
  }

  protected override complete(): boolean {
    return this.ended || this.#input.complete;
  }
}

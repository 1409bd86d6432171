/** Documents and search results in the words of models that have no such thing: their text, headed by what it is. */
import type { DocumentBlockParam, SearchResultBlockParam } from "./contract.ts";

/** What stands before a document's text; empty where it has neither title nor context. */
export function documentHead({ title, context }: Pick<DocumentBlockParam, "title" | "context">): string {
  const lines = [title ? `Document: ${title}` : "", context ? `Context: ${context}` : ""].filter((text) => text !== "");
  return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`;
}

export function searchResultText({ title, source, content }: SearchResultBlockParam): string {
  return `Search result: ${title}\nSource: ${source}\n\n${content.map((block) => block.text).join("\n")}`;
}

/** What a tool search found, as the model is told: the tool itself is among the request's tools. */
export function toolReferenceText(toolName: string): string {
  return `The tool ${toolName} is available.`;
}

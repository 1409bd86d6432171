/** Writes documents and search results as text, for models that do not know such blocks. */
import type { DocumentBlockParam, SearchResultBlockParam } from "./contract.ts";

/** The lines before a document's text; empty if it has neither a title nor a context. */
export function documentHead({ title, context }: Pick<DocumentBlockParam, "title" | "context">): string {
  const lines = [title ? `Document: ${title}` : "", context ? `Context: ${context}` : ""].filter((text) => text !== "");
  return lines.length === 0 ? "" : `${lines.join("\n")}\n\n`;
}

export function searchResultText({ title, source, content }: SearchResultBlockParam): string {
  return `Search result: ${title}\nSource: ${source}\n\n${content.map((block) => block.text).join("\n")}`;
}

/** The text for a tool that a tool search found. The tool itself is one of the request's tools. */
export function toolReferenceText(toolName: string): string {
  return `The tool ${toolName} is available.`;
}

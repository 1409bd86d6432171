/**
 * Claude Code puts a line at the head of its system text that changes with every request, and so defeats every prefix
 * cache behind it (docs/design/service.md, Billing line). It is removed, with the line break after it.
 */
const line = /^x-anthropic-billing-header:[^\n]*(\n|$)/i;

/** The text without that line; null where the line was all there was. */
export function withoutBillingLine(text: string): string | null {
  if (!line.test(text.slice(0, 64))) return text;
  const rest = text.replace(line, "");
  return rest === "" ? null : rest;
}

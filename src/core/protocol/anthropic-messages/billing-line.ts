/**
 * Removes the line that Claude Code puts at the head of its system text. The line changes with every request, and so
 * defeats prefix caches (docs/design/service.md, Billing line).
 */
const line = /^x-anthropic-billing-header:[^\n]*(\n|$)/i;

/** The text without the billing line; null if nothing else is left. */
export function withoutBillingLine(text: string): string | null {
  if (!line.test(text.slice(0, 64))) return text;
  const rest = text.replace(line, "");
  return rest === "" ? null : rest;
}

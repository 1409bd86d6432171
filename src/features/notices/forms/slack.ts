/** Writes a message for an incoming webhook of Slack: a text for notifications, and blocks. Pure. */
import type { Message } from "../kinds.ts";
import { cut, known, written } from "./text.ts";

const marks: Record<Message["tone"], string> = {
  good: ":large_green_circle:",
  warning: ":large_yellow_circle:",
  bad: ":red_circle:",
};
// Slack's limits, which apply to the escaped text.
const header_chars_max = 150;
const field_chars_max = 2_000;
const fields_max = 10;

/** Writes the message as JSON for Slack. `link`: the URL of the console's page about the subject of the message. */
export function asSlack({ tone, title, facts }: Message, link: string | null) {
  const fields = known(facts).map(([name, value]) => mrkdwn(`*${escaped(name)}*\n${valueText(value)}`));
  return {
    text: `${marks[tone]} ${fitting(title, header_chars_max)}`,
    blocks: [
      { type: "header", text: { type: "plain_text", text: fitting(title, header_chars_max), emoji: false } },
      ...(fields.length > 0 ? [{ type: "section", fields: fields.slice(0, fields_max) }] : []),
      ...(link === null ? [] : [{ type: "context", elements: [mrkdwn(`<${escaped(link)}|Open in the console>`)] }]),
    ],
  };
}

const mrkdwn = (text: string) => ({ type: "mrkdwn", text, verbatim: true });

/** The text of a value. Slack shows a date to each reader in the reader's own time zone. */
function valueText(value: string | Date): string {
  if (typeof value === "string") return fitting(value, field_chars_max - 200);
  return `<!date^${Math.floor(value.getTime() / 1000)}^{date_short_pretty} {time}|${written(value)}>`;
}

/** Escapes a text. Mentions, links and dates begin with `<`, so names that people chose cannot make any of them. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The longest beginning of the text that, escaped, has at most `chars_max` characters; returned escaped. */
function fitting(text: string, chars_max: number): string {
  let length = chars_max;
  while (escaped(cut(text, length)).length > chars_max) length -= 1;
  return escaped(cut(text, length));
}

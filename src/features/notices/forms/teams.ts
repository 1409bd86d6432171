/** Writes a message for a webhook of Teams' Workflows, as an Adaptive Card. Pure. */
import type { Message } from "../kinds.ts";
import { cut, known, written } from "./text.ts";

const colors: Record<Message["tone"], string> = { good: "good", warning: "warning", bad: "attention" };
// These limits keep a message within the 28 KB that Teams accepts, however its characters are encoded.
const title_chars_max = 300;
const value_chars_max = 300;
const facts_max = 10;

/** Writes the message as JSON for Teams. `link`: the URL of the console's page about the subject of the message. */
export function asTeams({ tone, title, facts }: Message, link: string | null) {
  const listed = known(facts).slice(0, facts_max);
  const run = {
    type: "TextRun",
    text: cut(title, title_chars_max),
    weight: "bolder",
    size: "medium",
    color: colors[tone],
  };
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    msteams: { width: "Full" },
    fallbackText: cut(title, title_chars_max),
    body: [
      // In a text run, Teams does not interpret Markdown, so this text is not escaped.
      { type: "RichTextBlock", inlines: [run] },
      ...(listed.length > 0 ? [{ type: "FactSet", facts: listed.map(factOf) }] : []),
    ],
    actions: link === null ? [] : [{ type: "Action.OpenUrl", title: "Open in the console", url: link }],
  };
  const attachment = { contentType: "application/vnd.microsoft.card.adaptive", contentUrl: null, content };
  return { type: "message", attachments: [attachment] };
}

function factOf([name, value]: readonly [string, string | Date]) {
  return { title: name, value: typeof value === "string" ? escaped(cut(value, value_chars_max)) : written(value) };
}

/** Escapes the Markdown in a text, so that names that people chose make no link, no emphasis and no list. */
function escaped(text: string): string {
  return text.replace(/[\\*_~`[\]()<>#|]/g, "\\$&").replace(/^(\s*)([-+]|\d+(?=\.))/gm, "$1\\$2");
}

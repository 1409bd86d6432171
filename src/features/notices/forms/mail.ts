/** Writes a message as mail: a subject, plain text, and the same text as HTML, which loads nothing. Pure. */
import type { Message } from "../kinds.ts";
import { cut, known, oneLine, written } from "./text.ts";

const subject_chars_max = 150;
const value_chars_max = 2_000;

interface Links {
  /** The URL of the console's page about the subject of the message; null: there is none. */
  page: string | null;
  /** The URL of the page on which the recipient unsubscribes; null: there is none. */
  unsubscribe: string | null;
}

export interface WrittenMail {
  subject: string;
  text: string;
  html: string;
}

const why = "You get this because an administrator of Sluice has named your address.";

export function asMail({ title, facts }: Message, { page, unsubscribe }: Links): WrittenMail {
  const subject = cut(oneLine(title), subject_chars_max);
  const listed = known(facts).map(([name, value]) => [name, textOf(value)] as const);
  const text = [
    oneLine(title),
    listed.map(([name, value]) => `${name}: ${value}`).join("\n"),
    page && `Open in the console: ${page}`,
    unsubscribe && `--\n${why}\nTo get no more of it: ${unsubscribe}`,
  ];
  return {
    subject,
    text: `${text.filter(Boolean).join("\n\n")}\n`,
    html: htmlOf(oneLine(title), listed, { page, unsubscribe }),
  };
}

function htmlOf(title: string, facts: readonly (readonly [string, string])[], { page, unsubscribe }: Links): string {
  const cell = (style: string, text: string) =>
    `<td style="padding:4px 16px 4px 0;vertical-align:top;${style}">${text}</td>`;
  const rows = facts.map(
    ([name, value]) => `<tr>${cell("color:#4a5359", escaped(name))}${cell("", escaped(value))}</tr>`,
  );
  const link = (url: string, words: string) => `<a href="${escaped(url)}" style="color:#0a6b62">${words}</a>`;
  return [
    `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title></head>`,
    `<body style="font:15px/1.5 system-ui,sans-serif;color:#15191c"><h1 style="font-size:18px">${escaped(title)}</h1>`,
    rows.length > 0 ? `<table role="presentation">${rows.join("")}</table>` : "",
    page === null ? "" : `<p>${link(page, "Open in the console")}</p>`,
    unsubscribe === null
      ? ""
      : `<p style="color:#4a5359;font-size:13px">${why} ${link(unsubscribe, "Get no more of it")}</p>`,
    "</body></html>\n",
  ].join("\n");
}

const textOf = (value: string | Date) =>
  typeof value === "string" ? cut(oneLine(value), value_chars_max) : written(value);

const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escaped = (text: string) => text.replace(/[&<>"']/g, (one) => entities[one]!);

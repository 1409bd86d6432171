// Fake incoming webhooks of Slack and of Teams. They accept the messages that the vendors' documentation allows,
// enforce the documented limits, and respond as the real services do.

import { z } from "zod";

/** A message as a channel shows it: names and values without the escapes of Slack's or Teams' format. */
export interface Shown {
  title: string;
  facts: Record<string, string>;
  link: string | null;
}

export interface Channel {
  /** The channel's URL, with a secret in its path, as the URLs of real channels have. */
  url: string;
  secret: string;
  got: Shown[];
  /** The reasons for which messages were refused. */
  refused: string[];
  stop(): void;
}

// The message format that Slack accepts: https://docs.slack.dev/reference/block-kit, and Formatting text for app
// surfaces.
const slackDate = /<!date\^\d{9,11}\^\{date_short_pretty\} \{time\}\|([^<>|]+)>/g;
const slackLink = /<(https?:\/\/[^<>|\s]+)\|([^<>|]+)>/g;

/**
 * Text in Slack's format, in which `<` is only valid as the start of markup, and `&` only as the start of an entity.
 */
const escapedText = (chars_max: number) =>
  z
    .string()
    .min(1)
    .max(chars_max)
    .refine(
      (text) => !/[<>]|&(?!(amp|lt|gt);)/.test(text.replace(slackDate, "").replace(slackLink, "")),
      "not escaped",
    );
const mrkdwn = (chars_max: number) =>
  z.strictObject({ type: z.literal("mrkdwn"), text: escapedText(chars_max), verbatim: z.literal(true) });
const plainText = (chars_max: number) =>
  z.strictObject({ type: z.literal("plain_text"), text: escapedText(chars_max), emoji: z.boolean().optional() });
const blocks = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("header"), text: plainText(150) }),
  z.strictObject({
    type: z.literal("section"),
    text: mrkdwn(3_000).optional(),
    fields: z.array(mrkdwn(2_000)).min(1).max(10),
  }),
  z.strictObject({ type: z.literal("context"), elements: z.array(mrkdwn(3_000)).min(1).max(10) }),
]);
const slackMessage = z.strictObject({ text: escapedText(4_000), blocks: z.array(blocks).min(1).max(50) });

const unescaped = (text: string) => text.replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");

function slackShown(body: string): Shown {
  const message = slackMessage.parse(JSON.parse(body));
  const header = message.blocks.find((block) => block.type === "header")!;
  const fields = message.blocks.flatMap((block) => (block.type === "section" ? block.fields : []));
  const links = message.blocks.flatMap((block) => (block.type === "context" ? block.elements : []));
  const title = unescaped(header.text.text);
  if (!unescaped(message.text).endsWith(title)) throw new Error("its text is not its title");
  return {
    title,
    facts: Object.fromEntries(
      fields.map(({ text }) => {
        const [, name = "", value = ""] = /^\*([^*]+)\*\n([\s\S]+)$/.exec(text) ?? [];
        return [name, unescaped(value.replace(slackDate, "$1"))];
      }),
    ),
    link: links.map(({ text }) => unescaped(text.replace(slackLink, "$1")))[0] ?? null,
  };
}

// The message format that Teams accepts, as documented in Create incoming webhooks with Workflows, and in the schema of
// Adaptive Cards 1.4.
const teamsMessage_bytes_max = 28 * 1024;
const run = z.strictObject({
  type: z.literal("TextRun"),
  text: z.string().min(1),
  weight: z.enum(["lighter", "default", "bolder"]),
  size: z.enum(["small", "default", "medium", "large", "extraLarge"]),
  color: z.enum(["default", "dark", "light", "accent", "good", "warning", "attention"]),
});
/** Text in which the Markdown characters that a name could contain are escaped. */
const factText = z
  .string()
  .refine((text) => !/(?<!\\)[*_~`[\]<>]|^\s*([-+#]|\d+\.) /m.test(text.replaceAll("\\\\", "")));
const elements = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("RichTextBlock"), inlines: z.array(run).min(1) }),
  z.strictObject({
    type: z.literal("FactSet"),
    facts: z.array(z.strictObject({ title: factText, value: factText })).min(1),
  }),
]);
const card = z.strictObject({
  $schema: z.literal("http://adaptivecards.io/schemas/adaptive-card.json"),
  type: z.literal("AdaptiveCard"),
  version: z.enum(["1.2", "1.3", "1.4", "1.5"]),
  msteams: z.strictObject({ width: z.literal("Full") }),
  fallbackText: z.string(),
  body: z.array(elements).min(1),
  actions: z.array(z.strictObject({ type: z.literal("Action.OpenUrl"), title: z.string(), url: z.url() })).max(6),
});
const teamsMessage = z.strictObject({
  type: z.literal("message"),
  attachments: z
    .array(
      z.strictObject({
        contentType: z.literal("application/vnd.microsoft.card.adaptive"),
        contentUrl: z.null(),
        content: card,
      }),
    )
    .length(1),
});

function teamsShown(body: string): Shown {
  if (Buffer.byteLength(body) > teamsMessage_bytes_max) throw new Error("it has more than 28 KB");
  const { content } = teamsMessage.parse(JSON.parse(body)).attachments[0]!;
  const title = content.body
    .flatMap((one) => (one.type === "RichTextBlock" ? one.inlines : []))
    .map(({ text }) => text);
  const facts = content.body.flatMap((one) => (one.type === "FactSet" ? one.facts : []));
  return {
    title: title.join(""),
    facts: Object.fromEntries(facts.map(({ title, value }) => [title, value.replace(/\\([^\w\s]|\d)/g, "$1")])),
    link: content.actions[0]?.url ?? null,
  };
}

export const slackChannel = () => channel("/services/T0/B0", slackShown, 200);
export const teamsChannel = () => channel("/workflows/w0/triggers/manual/paths/invoke", teamsShown, 202);

function channel(path: string, shown: (body: string) => Shown, accepts: number): Channel {
  const secret = `s3cret${crypto.randomUUID().replaceAll("-", "")}`;
  const got: Shown[] = [];
  const refused: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      if (request.method !== "POST" || `${pathname}${search}` !== `${path}/${secret}?sig=${secret}`)
        return new Response("no_service", { status: 404 });
      if (request.headers.get("content-type") !== "application/json") return new Response(null, { status: 415 });
      try {
        got.push(shown(await request.text()));
        return new Response("ok", { status: accepts });
      } catch (cause) {
        refused.push(String(cause));
        return new Response("invalid_blocks", { status: 400 });
      }
    },
  });
  const url = `http://127.0.0.1:${server.port}${path}/${secret}?sig=${secret}`;
  return { url, secret, got, refused, stop: () => server.stop(true) };
}

// A real mail server (smtp-server), and the content of the mails it received as another real program (postal-mime)
// parses it.

import PostalMime from "postal-mime";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { MailServer } from "../../src/features/notices/mail/smtp.ts";
import type { Channel, Shown } from "./channels.ts";

/** A mail as the server received it. */
export interface TakenMail extends Shown {
  /** The sender in the envelope. */
  from: string;
  to: string[];
  isEncrypted: boolean;
  user: string | null;
  raw: string;
  headers: Record<string, string>;
  text: string;
  html: string;
}

export interface Mailbox extends Channel {
  /** The server's settings in sluice.yaml. */
  settings: MailServer;
  mails: TakenMail[];
  connections(): number;
}

interface Answer {
  code: number;
  says: string;
}

interface Options extends SMTPServerOptions {
  tls?: MailServer["tls"];
  ca?: string;
  /** The user name with which a client must sign in; if absent, clients do not sign in. */
  user?: string;
  password?: string;
  /** The server's response to a recipient; null: the recipient is accepted. */
  recipient?: (address: string) => Answer | null | Promise<Answer | null>;
  /** The server's response to a message; null: the message is accepted. */
  message?: () => Answer | null;
}

/** Returns a function that starts mail servers, and adds their stop to `ending` (endings.ts). */
export function mailboxes(ending: (() => unknown)[]): (options?: Options) => Promise<Mailbox> {
  return async (options) => {
    const made = await mailbox(options);
    ending.push(made.stop);
    return made;
  };
}

export async function mailbox(options: Options = {}): Promise<Mailbox> {
  const { tls = "off", ca, user, password, recipient = () => null, message = () => null, ...more } = options;
  const got: TakenMail[] = [];
  const refused: string[] = [];
  let connections = 0;
  const server = new SMTPServer({
    secure: tls === "implicit",
    disabledCommands: [...(user === undefined ? ["AUTH"] : []), ...(tls === "off" ? ["STARTTLS"] : [])],
    onAuth(auth, _, done) {
      const isRight = auth.username === user && auth.password === password;
      done(isRight ? null : answered({ code: 535, says: `no such user: ${auth.password}` }), { user: auth.username });
    },
    onConnect(_, done) {
      connections += 1;
      done();
    },
    async onRcptTo({ address }, _, done) {
      const answer = await recipient(address);
      done(answer && answered(answer));
    },
    async onData(stream, { envelope, secure, user: signedIn = null }, done) {
      const raw = await wholeOf(stream);
      // The sending process was killed before the message was complete.
      if (raw === null) return done(answered({ code: 451, says: "it is not whole" }));
      const answer = message();
      if (answer) return done(answered(answer));
      try {
        const to = envelope.rcptTo.map(({ address }) => address);
        const from = envelope.mailFrom ? envelope.mailFrom.address : "";
        got.push({ ...(await shown(raw)), from, to, isEncrypted: secure, user: signedIn as string | null, raw });
        done();
      } catch (cause) {
        refused.push(String(cause));
        done(answered({ code: 554, says: "it cannot be read" }));
      }
    },
    ...more,
  });
  // A client that closes its connection early is no failure of this server.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.server.address() as { port: number };
  const settings: MailServer = {
    ...{ host: "127.0.0.1", port, tls, ca: ca ?? null, from: "sluice@acme.example", from_name: "Sluice" },
    ...(user !== undefined && { user, ...(password !== undefined && { password }) }),
    recipient_domains: [],
  };
  const stop = () => void server.close();
  return {
    url: "ann@acme.example",
    secret: "",
    settings,
    got,
    mails: got,
    refused,
    connections: () => connections,
    stop,
  };
}

async function wholeOf(stream: AsyncIterable<Buffer>): Promise<string | null> {
  const pieces: Buffer[] = [];
  try {
    for await (const piece of stream) pieces.push(piece);
  } catch {
    return null;
  }
  return Buffer.concat(pieces).toString();
}

const answered = ({ code, says }: Answer) => Object.assign(new Error(says), { responseCode: code });

/** Parses a mail. Throws if its text and its HTML differ in content, or if the HTML loads or runs anything. */
async function shown(raw: string): Promise<Omit<TakenMail, "from" | "to" | "isEncrypted" | "user" | "raw">> {
  const { subject = "", headers, text = "", html = "" } = await PostalMime.parse(raw);
  if (/<(?!\/?(html|head|meta|title|body|h1|table|tr|td|p|a)\b|!doctype)/i.test(html))
    throw new Error(`strange HTML: ${html}`);
  const [first = "", ...paragraphs] = text.trimEnd().split("\n\n");
  const body = unescaped(html.replace(/^[\s\S]*<body[^>]*>/, "").replace(/<[^>]+>/g, "\n"));
  const link = /^Open in the console: (\S+)$/m.exec(text)?.[1] ?? null;
  const facts = (paragraphs[0] ?? "").split("\n").flatMap((line) => {
    const [, name, value] = /^([^:]+): (.*)$/.exec(line) ?? [];
    return name === undefined || name === "Open in the console" ? [] : [[name, value!] as const];
  });
  for (const part of [first, ...facts.flat()]) if (!body.includes(part)) throw new Error(`the HTML lacks '${part}'`);
  if (!first.startsWith(subject.replace(/…$/, ""))) throw new Error(`the subject is '${subject}'`);
  return {
    title: first,
    facts: Object.fromEntries(facts),
    link,
    headers: Object.fromEntries(headers.map(({ key, value }) => [key, value])),
    text,
    html,
  };
}

const unescaped = (text: string) =>
  text
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");

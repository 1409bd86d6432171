/**
 * Sends mail through the operator's mail server (docs/notices.md, Mail). The mails of a round, which are due at the
 * same time, are sent one after another on one connection. A refusal of a recipient or message is final if the server's
 * reply code begins with 5; any other problem may be temporary, and the mail is tried again later.
 */
import MailComposer from "nodemailer/lib/mail-composer";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import type { WrittenMail } from "../forms/mail.ts";
import { oneLine } from "../forms/text.ts";

export interface MailServer {
  host: string;
  /** The port of the mail server. Absent: the standard port for the value of `tls`. */
  port?: number;
  tls: "starttls" | "implicit" | "off";
  /** The trusted certificate authorities, in PEM; null: the system's authorities. */
  ca: string | null;
  user?: string;
  password?: string;
  from: string;
  from_name: string;
  /** The only domains to which mail is sent; empty: all domains. */
  recipient_domains: readonly string[];
}

export interface Mail extends WrittenMail {
  to: string;
  /** The part of the Message-ID before the domain. It is the same for every attempt to send the mail. */
  name: string;
  at: Date;
  /** The recipient's unsubscribe URL; null: there is none. */
  unsubscribe: string | null;
}

/** The reason why the server did not accept a mail. `isFinal`: another attempt would be refused, too. */
export interface MailRefusal {
  problem: string;
  isFinal: boolean;
}

export interface MailRound {
  /** Sends a mail. Null: the server has accepted it. Never throws. */
  send(mail: Mail): Promise<MailRefusal | null>;
  end(): void;
}

interface Terms {
  /** The time limit for all mails of the round. */
  wait_ms: number;
  /** Called with the cause if the server cannot be used. */
  failed(cause: unknown): void;
}

/** The time limit of each of these steps: the DNS look-up, the connection, the greeting, each reply. */
const step_ms = 10_000;
const response_bytes_max = 16 * 1024;
const ports: Record<MailServer["tls"], number> = { starttls: 587, implicit: 465, off: 25 };

export function mailRound(server: MailServer, { wait_ms, failed }: Terms): MailRound {
  const over = Promise.withResolvers<never>();
  over.promise.catch(() => {});
  let open: Open | null = null;
  let timer: Timer | null = null;
  let broken: MailRefusal | null = null;
  let last: Promise<unknown> = Promise.resolve();

  async function sendNow(mail: Mail): Promise<MailRefusal | null> {
    if (broken) return broken;
    timer ??= setTimeout(() => over.reject(new Late()), wait_ms);
    try {
      open ??= opened(server);
      await Promise.race([sentBy(open, server, mail), open.closed, over.promise]);
      open.mails += 1;
      return null;
    } catch (cause) {
      const refusal = refusalOf(cause, mail.to);
      if (isOfMail(cause) && open && (await isReset(open, over.promise))) return refusal;
      open?.connection.close();
      // The next mail gets a new connection: the server may accept only so many mails on one. But if the connection
      // failed before the server accepted any mail on it, the other mails of the round are not tried.
      if (!isOfMail(cause) && (open?.mails ?? 0) === 0) {
        broken = refusal;
        failed(cause);
      }
      open = null;
      return refusal;
    }
  }

  return {
    send(mail) {
      const next = last.then(() => sendNow(mail));
      last = next;
      return next;
    },
    end() {
      if (timer) clearTimeout(timer);
      over.reject(new Late());
      open?.connection.quit();
    },
  };
}

interface Open {
  connection: SMTPConnection;
  /** Resolves when the server accepts mails on the connection. */
  ready: Promise<void>;
  /** Rejects when the connection fails or is closed. */
  closed: Promise<never>;
  /** The number of mails that the server has accepted on the connection. */
  mails: number;
}

class Late extends Error {
  override message = "the mails of this round took too long";
}

/** The reason why the server cannot be used. `says`: the end of a sentence that begins with "the server". */
export interface Unusable {
  why: "certificate" | "sign-in" | "starttls" | "busy" | "silent" | "unreachable";
  says: string;
}

/**
 * Checks the server: connects and signs in as for a round of mails, but sends no mail. Returns the reason why the
 * server cannot be used; null: it can be used. Never throws.
 */
export async function whyUnusable(server: MailServer, wait_ms: number): Promise<Unusable | null> {
  const { connection, ready, closed } = opened(server);
  const over = Promise.withResolvers<never>();
  const timer = setTimeout(() => over.reject(new Late()), wait_ms);
  try {
    await Promise.race([ready, closed, over.promise]);
    connection.quit();
    return null;
  } catch (cause) {
    connection.close();
    return unusable(cause);
  } finally {
    clearTimeout(timer);
  }
}

export const portOf = ({ port, tls }: MailServer): number => port ?? ports[tls];

function opened(server: MailServer): Open {
  const { host, tls, ca, user, password } = server;
  const connection = new SMTPConnection({
    host,
    port: portOf(server),
    secure: tls === "implicit",
    requireTLS: tls === "starttls",
    ignoreTLS: tls === "off",
    connectionTimeout: step_ms,
    greetingTimeout: step_ms,
    socketTimeout: step_ms,
    dnsTimeout: step_ms,
    maxResponseSize: response_bytes_max,
    socketCloseTimeout: 1_000,
    tls: { minVersion: "TLSv1.2", ...(ca !== null && { ca }) },
  });
  const closed = new Promise<never>((_, reject) => {
    connection.on("error", reject);
    connection.on("end", () => reject(new Error("the server closed the connection")));
  });
  closed.catch(() => {});
  const ready = new Promise<void>((resolve, reject) => {
    connection.connect(() => {
      if (user === undefined) resolve();
      else connection.login({ user, pass: password ?? "" }, (cause) => (cause ? reject(cause) : resolve()));
    });
  });
  ready.catch(() => {});
  return { connection, ready, closed, mails: 0 };
}

async function sentBy({ connection, ready }: Open, server: MailServer, mail: Mail): Promise<void> {
  const message = await composed(server, mail);
  await ready;
  const envelope = { from: server.from, to: mail.to, size: message.length };
  await new Promise<void>((resolve, reject) => {
    connection.send(envelope, message, (cause) => (cause ? reject(cause) : resolve()));
  });
}

/**
 * Sends RSET, with which the server discards the refused mail. Returns whether it did, so that the next mail can use
 * the connection.
 */
function isReset({ connection, closed }: Open, over: Promise<never>): Promise<boolean> {
  const answered = new Promise<boolean>((resolve) => connection.reset((cause) => resolve(!cause)));
  return Promise.race([answered, closed, over]).catch(() => false);
}

function composed({ from, from_name }: MailServer, mail: Mail): Promise<Buffer> {
  const { to, name, at, unsubscribe, subject, text, html } = mail;
  const composer = new MailComposer({
    from: { name: from_name, address: from },
    to: { name: "", address: to },
    subject,
    text,
    html,
    date: at,
    messageId: `<${name}@${from.slice(from.lastIndexOf("@") + 1)}>`,
    headers: {
      "Auto-Submitted": "auto-generated",
      ...(unsubscribe !== null && {
        "List-Unsubscribe": { prepared: true, value: `<${unsubscribe}>` },
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
      }),
    },
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  return composer.compile().build();
}

interface ServerReply {
  code?: string;
  command?: string;
  response?: string;
  responseCode?: number;
  message?: string;
}

/** Whether the error is the server's reply about this recipient or this message, and not about the connection. */
function isOfMail(cause: unknown): boolean {
  const { command = "", responseCode = 421 } = cause as ServerReply;
  return ["RCPT TO", "DATA"].includes(command) && responseCode !== 421;
}

/**
 * The refusal for an error. Organizations read its text, so it reveals no more about the operator's mail server than
 * they need.
 */
function refusalOf(cause: unknown, to: string): MailRefusal {
  const { responseCode, response } = cause as ServerReply;
  if (isOfMail(cause))
    return {
      problem: `the mail server refused ${to}: ${oneLine(response ?? "").slice(0, 200)}`,
      isFinal: responseCode! >= 500,
    };
  return { problem: `the mail server of the service ${unusable(cause).says}`, isFinal: false };
}

/** The reason why the server cannot be used, without the server's own words, which may repeat the password. */
function unusable(cause: unknown): Unusable {
  const { code = "", responseCode, message = "" } = cause as ServerReply;
  if (/cert|self.signed|altname|unable to verify/i.test(`${code} ${message}`))
    return { why: "certificate", says: "has a certificate that is not trusted" };
  if (code === "EAUTH") return { why: "sign-in", says: "refuses the user or the password" };
  if (code === "ETLS") return { why: "starttls", says: "offers no STARTTLS" };
  if (responseCode) return { why: "busy", says: `refuses mail now (${responseCode})` };
  if (code === "ETIMEDOUT" || cause instanceof Late) return { why: "silent", says: "did not answer in time" };
  return { why: "unreachable", says: "cannot be reached" };
}

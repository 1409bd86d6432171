/**
 * The finding of `sluice doctor` about the server that sends notices by mail. The check begins a mail, but sends none.
 */
import type { MailServer, Unusable } from "../../features/notices/mail/smtp.ts";

const server_ms = 12_000;

const encryption = { starttls: "encrypted by STARTTLS", implicit: "encrypted", off: "not encrypted" };

/**
 * Checks the mail server, and returns the result in one sentence. Throws an Error that says what is wrong and what to
 * do.
 */
export async function mailServerSays(server: MailServer): Promise<string> {
  const { portOf, whyUnusable } = await import("../../features/notices/mail/smtp.ts");
  const { host, tls, user } = server;
  const address = `${host.includes(":") ? `[${host}]` : host}:${portOf(server)}`;
  const found = await whyUnusable(server, server_ms);
  if (found) throw new Error(`${address} ${found.says}; ${advice[found.why](server)}`);
  return `${address} responds, ${encryption[tls]}${user === undefined ? "" : `, and signs '${user}' in`}`;
}

const advice: Record<Unusable["why"], (server: MailServer) => string> = {
  certificate: ({ host }) =>
    `set smtp.ca_file in sluice.yaml to the authority that issued it, or smtp.host to its name, if that is not '${host}'`,
  "sign-in": () => "correct smtp.user and smtp.password in sluice.yaml, or leave both out if it signs nobody in",
  starttls: () => "use a port that does, such as 587, or set smtp.tls in sluice.yaml to implicit (port 465) or off",
  busy: () => "ask who runs it whether this machine may send mail, and try again",
  silent: () => "check that smtp.tls in sluice.yaml is what its port expects, and that no firewall is in between",
  unreachable: () => "correct smtp.host and smtp.port in sluice.yaml, or let this machine reach it",
};

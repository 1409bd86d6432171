/** Makes one attempt to deliver a notice, in the form of its destination. */
import { asJson } from "./forms/json.ts";
import { asMail } from "./forms/mail.ts";
import { asSlack } from "./forms/slack.ts";
import { asTeams } from "./forms/teams.ts";
import { type Message, messageOf } from "./kinds.ts";
import { isAllowedAt } from "./mail/address.ts";
import type { MailRound } from "./mail/smtp.ts";
import type { Delivery, DueNotice } from "./store/notice.ts";
import { sendWebhook, type WebhookRequest } from "./webhook.ts";

interface Terms {
  allowPrivate: boolean;
  consoleUrl: string | null;
  now_ms: number;
  /**
   * The round (the mails that share a connection to the server) in which mail is sent, and the allowed domains of
   * recipients (empty: all); null: the service sends no mail.
   */
  mail: { round: MailRound; domains: readonly string[] } | null;
}

/** The time limit of one webhook call, far shorter than the lease of a notice. */
const wait_ms = 10_000;

/** Makes one attempt to deliver a notice. The returned problem never contains an address that is a secret. */
export async function deliver(notice: DueNotice, terms: Terms): Promise<Delivery> {
  const { form, address, secret } = notice;
  if (form === "mail") return mailed(notice, terms);
  const toOrganization = notice.organization === null ? "" : ` ${notice.organization}`;
  const command = `sluice notice set${toOrganization} --name ${notice.destination}`;
  if (address === null)
    return { problem: `its URL was encrypted with another SLUICE_SECRET_KEY; set it anew: ${command} --url URL` };
  const send = (request: WebhookRequest) => sendWebhook(request, { allowPrivate: terms.allowPrivate, wait_ms });
  if (form === "json") {
    if (secret !== null) return { problem: await send(asJson(notice, { url: address, secret, now_ms: terms.now_ms })) };
    return {
      problem: `its secret was encrypted with another SLUICE_SECRET_KEY; for a new one, run: ${command} --new-secret`,
    };
  }
  const message = messageOf(notice.kind, notice);
  const problem = await send(post(address, written[form](message, pageOf(message, terms.consoleUrl))));
  return { problem: problem && withoutUrl(problem, address) };
}

const written: Record<"slack" | "teams", (message: Message, link: string | null) => object> = {
  slack: asSlack,
  teams: asTeams,
};

const pageOf = ({ page }: Message, consoleUrl: string | null) =>
  consoleUrl === null || page === null ? null : new URL(page, consoleUrl).href;

/**
 * Sends a separate mail to each recipient: each mail has its recipient's own unsubscribe link, and no recipient sees
 * the others.
 */
async function mailed(notice: DueNotice, { mail, consoleUrl, now_ms }: Terms): Promise<Delivery> {
  const { recipients } = notice;
  if (recipients.length === 0) return { problem: "nobody is left whom it could be sent to", isFinal: true };
  if (mail === null) return { problem: "the service sends no mail: smtp is missing in sluice.yaml" };
  const message = messageOf(notice.kind, notice);
  const page = pageOf(message, consoleUrl);
  const answers = await Promise.all(
    recipients.map(async ({ address, unsubscribes }) => {
      if (!isAllowedAt(mail.domains, address))
        return { address, refusal: { problem: `sluice.yaml allows no mail to ${address}`, isFinal: true } };
      const unsubscribe = unsubscribes && consoleUrl && new URL(`/unsubscribe/${unsubscribes}`, consoleUrl).href;
      const name = `${notice.id}.${new Bun.CryptoHasher("sha256", notice.id).update(address).digest("hex").slice(0, 16)}`;
      const content = { ...asMail(message, { page, unsubscribe }), unsubscribe };
      return { address, refusal: await mail.round.send({ ...content, to: address, name, at: new Date(now_ms) }) };
    }),
  );
  const left = answers.flatMap(({ refusal }) => refusal ?? []);
  return {
    problem: left.length === 0 ? null : [...new Set(left.map(({ problem }) => problem))].join("; ").slice(0, 1_000),
    isFinal: left.every(({ isFinal }) => isFinal),
    settled: answers.filter(({ refusal }) => refusal?.isFinal !== false).map(({ address }) => address),
  };
}

function post(url: string, body: object): WebhookRequest {
  return { url, body: JSON.stringify(body), headers: { "content-type": "application/json", "user-agent": "sluice" } };
}

/**
 * Removes the webhook's URL from the text of a problem, which is stored and shown: the error of a library may contain
 * the URL. Pure.
 */
export function withoutUrl(problem: string, address: string): string {
  const { pathname, search } = new URL(address);
  return [address, pathname + search, pathname].reduce(
    (text, part) => (part.length > 1 ? text.replaceAll(part, "<url>") : text),
    problem,
  );
}

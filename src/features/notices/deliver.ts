/** One attempt to deliver a notice, in the form of its destination. */
import { asJson } from "./forms/json.ts";
import { asSlack } from "./forms/slack.ts";
import { asTeams } from "./forms/teams.ts";
import { type Message, messageOf } from "./kinds.ts";
import type { DueNotice } from "./store/notice.ts";
import { sendWebhook, type WebhookRequest } from "./webhook.ts";

interface Terms {
  allowPrivate: boolean;
  consoleUrl: string | null;
  now_ms: number;
}

/** Far shorter than the lease of a notice. */
const wait_ms = 10_000;

/** Null: it was delivered. Else one line that says why not, without an address that is a secret. */
export async function deliver(notice: DueNotice, { allowPrivate, consoleUrl, now_ms }: Terms): Promise<string | null> {
  const { form, address, secret } = notice;
  const toOrganization = notice.organization === null ? "" : ` ${notice.organization}`;
  const command = `sluice notice set${toOrganization} --name ${notice.destination}`;
  if (address === null)
    return `its URL was encrypted with another SLUICE_SECRET_KEY; set it anew: ${command} --url URL`;
  const send = (request: WebhookRequest) => sendWebhook(request, { allowPrivate, wait_ms });
  if (form === "json") {
    if (secret !== null) return send(asJson(notice, { url: address, secret, now_ms }));
    return `its secret was encrypted with another SLUICE_SECRET_KEY; for a new one, run: ${command} --new-secret`;
  }
  const message = messageOf(notice.kind, notice);
  const link = consoleUrl === null || message.page === null ? null : new URL(message.page, consoleUrl).href;
  const problem = await send(post(address, written[form](message, link)));
  return problem && withoutUrl(problem, address);
}

const written: Record<"slack" | "teams", (message: Message, link: string | null) => object> = {
  slack: asSlack,
  teams: asTeams,
};

function post(url: string, body: object): WebhookRequest {
  return { url, body: JSON.stringify(body), headers: { "content-type": "application/json", "user-agent": "sluice" } };
}

/** A problem is stored and shown, and a library may repeat in its error what it was asked for. Pure. */
export function withoutUrl(problem: string, address: string): string {
  const { pathname, search } = new URL(address);
  return [address, pathname + search, pathname].reduce(
    (text, part) => (part.length > 1 ? text.replaceAll(part, "<url>") : text),
    problem,
  );
}

/**
 * The page of the unsubscribe link in a mail (docs/notices.md, Mail). A GET of the page changes nothing, because mail
 * scanners follow every link; only the button on the page and the one-click POST of mail programs (RFC 8058)
 * unsubscribe. Mail programs send no cookie and no origin: the secret in the URL authorizes the request, and permits
 * nothing else.
 */
import type { Call } from "../../core/http/call.ts";
import type { Operation } from "../../core/operations/operation.ts";
import { idIn } from "../../core/operations/path.ts";
import { unlisted } from "../../core/operations/unlisted.ts";
import type { ConsoleParts } from "../../features/identity/console.ts";
import type { Subscription, Subscriptions } from "../../features/notices/store/notice.ts";
import { bounded } from "./bounded.ts";
import { readFields } from "./form.ts";
import { html, page } from "./html.ts";
import { requireHost } from "./place.ts";

const path = "/unsubscribe/{id}";

/**
 * The name of the button that renews the subscription. A POST without this field, such as a mail program's, ends it.
 */
const again = "subscribe";

export function unsubscribing(parts: ConsoleParts, subscriptions: Subscriptions): Operation[] {
  const answered = async (call: Call, act: (secret: string) => Promise<Subscription | null>) => {
    requireHost(call, parts.origins(), "The console");
    const found = await bounded(parts, call, () => act(idIn(path, call.request)));
    return found ? answerOf(found) : unknown();
  };
  return [
    unlisted({
      id: "showSubscription",
      method: "get",
      path,
      type: "text/html",
      handle: (_, call) => answered(call, (secret) => subscriptions.findSubscription(secret)),
    }),
    unlisted({
      id: "unsubscribe",
      method: "post",
      path,
      type: "text/html",
      async handle(_, call) {
        const isSubscribed = (await readFields(call)).has(again);
        return answered(call, (secret) => subscriptions.subscribe(secret, isSubscribed));
      },
    }),
  ];
}

function answerOf({ organization, address, isSubscribed }: Subscription): Response {
  const what = organization === null ? "notices of Sluice" : `notices of ${organization}`;
  const button = (name: string, words: string) =>
    html`<form method="post"><button class="main" name="${name}" value="yes">${words}</button></form>`;
  return isSubscribed
    ? page(
        "Get no more mail",
        html`<p><b>${address}</b> gets ${what}.</p>${button("unsubscribe", "Get no more of it")}`,
      )
    : page(
        "You get no more mail",
        html`<p><b>${address}</b> gets no more ${what}.</p>${button(again, "Get it again")}`,
      );
}

const unknown = () =>
  page("This link is not known", html`<p>Take the whole link from the newest mail, or ask your administrator.</p>`, {
    status: 404,
  });

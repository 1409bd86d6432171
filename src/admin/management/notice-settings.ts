/** The settings of a destination of notices, made of the input of a change and the previous settings. Pure. */
import { isAllowedAt, mailAddress } from "../../features/notices/mail/address.ts";
import type { DestinationSettings, NoticeDestination } from "../store/notices.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

/** The most e-mail addresses of one destination. */
export const recipients_max = 20;
const shares_default = [80, 100];
const keyExpiry_days_default = 14;

interface Wanted {
  form?: DestinationSettings["form"] | undefined;
  url?: string | undefined;
  to?: string[] | undefined;
  shares?: number[] | undefined;
  keyExpiryDays?: number | undefined;
}

interface Service {
  canSeal: boolean;
  /** The only domains to which mail goes; an empty list: all domains; null: the service sends no mail. */
  domains: readonly string[] | null;
}

export function settingsOf(wanted: Wanted, before: NoticeDestination | null, service: Service): DestinationSettings {
  const { shares, keyExpiryDays } = wanted;
  const form = wanted.form ?? before?.form ?? "json";
  if (before && before.form !== form)
    fail(`'${before.name}' has the form ${before.form}. Remove it first, or choose another name.`, "wrong_state");
  const place = form === "mail" ? recipientsOf(wanted, service) : urlOf(wanted, form, service);
  if (place === null && !before) fail(form === "mail" ? "Specify the addresses." : "Specify the webhook's URL.");
  const all = shares ?? before?.shares ?? shares_default;
  return {
    form,
    address: place?.address ?? null,
    host: place?.host ?? before!.host,
    shares: [...new Set(all)].sort((one, other) => one - other),
    keyExpiryDays: keyExpiryDays ?? before?.keyExpiryDays ?? keyExpiry_days_default,
  };
}

type StoredAddress = Pick<DestinationSettings, "host"> & { address: string };

function recipientsOf({ to, url }: Wanted, { domains }: Service): StoredAddress | null {
  if (url !== undefined) fail("Mail goes to addresses, not to a URL.");
  if (to === undefined) return null;
  if (domains === null)
    return fail("This service sends no mail. An operator sets smtp in sluice.yaml first.", "wrong_state");
  const addresses = [...new Set(to.map(recipientOf))];
  const strange = addresses.find((address) => !isAllowedAt(domains, address));
  if (strange !== undefined)
    fail(
      `sluice.yaml allows no mail to ${strange}. It goes to these domains alone: ${domains.join(", ")}.`,
      "wrong_state",
    );
  return { address: addresses.join(","), host: addresses.join(", ") };
}

function recipientOf(word: string): string {
  return mailAddress(word) ?? fail(`'${parse.excerpt(word)}' is no address of mail. Use one such as ann@example.com.`);
}

function urlOf({ to, url }: Wanted, form: DestinationSettings["form"], { canSeal }: Service): StoredAddress | null {
  if (to !== undefined) fail("Addresses are for the form mail.");
  if (url === undefined) return null;
  const { href, host } = webhookUrl(url);
  if (form !== "json" && !canSeal)
    fail(
      "The URL of Slack and Teams is a secret, which is stored encrypted: set SLUICE_SECRET_KEY first.",
      "wrong_state",
    );
  return { address: href, host };
}

function webhookUrl(word: string): URL {
  const url = URL.parse(word);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url;
  // The text may be a secret even if it is no URL, so the refusal does not show it.
  return fail("That is not a webhook's URL. Use one that begins with https:// and has no user name.");
}

/** What an administrator does with webhooks of organizations (docs/notices.md). */
import type { Organization } from "../store/directory.ts";
import type { NoticeHook } from "../store/notice.ts";
import type { ManagementContext } from "./context.ts";
import { fail } from "./error.ts";
import * as parse from "./parse.ts";

export interface OwnedHook {
  organization: Organization;
  hook: NoticeHook;
}
/** `secret`: in plain text, this once; null: it stays as it was. */
export interface SetHook extends OwnedHook {
  secret: string | null;
}

export interface NoticeVerbs {
  findNotices(input: { organization: string }): Promise<OwnedHook>;
  /** What is left out stays, or of a new one: 80 and 100 percent, 14 days. */
  setNotices(input: {
    organization: string;
    url?: string | null;
    shares?: number[] | null;
    keyExpiryDays?: number | null;
    newSecret?: boolean | null;
  }): Promise<SetHook>;
  /** What waits to be sent is dropped. */
  removeNotices(input: { organization: string }): Promise<OwnedHook>;
}

const shares_default = [80, 100];
const shares_max = 10;
const keyExpiry_days_default = 14;
const keyExpiry_days_max = 90;
const secret_bytes = 32;

export function noticeVerbs(context: ManagementContext): NoticeVerbs {
  const { actor, notices, openOrganization, organizationOf, random } = context;
  return {
    async findNotices(input) {
      const organization = await organizationOf(input.organization);
      return { organization, hook: (await notices.noticeHook(organization.id)) ?? noHook(organization) };
    },
    async setNotices(input) {
      const organization = await openOrganization(input.organization);
      const before = await notices.noticeHook(organization.id);
      const { keyExpiryDays } = input;
      const settings = {
        url: parse.isAbsent(input.url) ? (before?.url ?? fail("Specify the webhook's URL.")) : webhookUrl(input.url),
        shares: parse.isAbsent(input.shares) ? (before?.shares ?? shares_default) : sharesIn(input.shares),
        keyExpiryDays: parse.isAbsent(keyExpiryDays)
          ? (before?.keyExpiryDays ?? keyExpiry_days_default)
          : daysIn(keyExpiryDays),
      };
      const secret = `whsec_${random(secret_bytes).toBase64({ alphabet: "base64url", omitPadding: true })}`;
      const renews = input.newSecret === true;
      const set = await notices.setNoticeHook(organization.id, settings, { secret, renews }, actor);
      return { organization, hook: set.hook, secret: set.isNewSecret ? secret : null };
    },
    async removeNotices(input) {
      const organization = await organizationOf(input.organization);
      return {
        organization,
        hook: (await notices.removeNoticeHook(organization.id, actor)) ?? noHook(organization),
      };
    },
  };
}

function webhookUrl(value: unknown): string {
  const word = parse.text(value, "the webhook's URL");
  const url = URL.parse(word);
  if (url && /^https?:$/.test(url.protocol) && !url.username && !url.password) return url.href;
  return fail(
    `'${parse.excerpt(word)}' is not a webhook's URL. Use one that begins with https:// and has no user name.`,
  );
}

function sharesIn(value: unknown): number[] {
  const isList = Array.isArray(value) && value.length <= shares_max;
  const shares = isList
    ? value.map((share) => parse.count(share, 100, "A share"))
    : fail(`Specify at most ${shares_max} shares.`);
  return [...new Set(shares)].sort((one, other) => one - other);
}

function daysIn(value: unknown): number {
  return value === 0 ? 0 : parse.count(value, keyExpiry_days_max, "The number of days before a key expires");
}

function noHook({ slug }: Organization): never {
  return fail(`${slug} has no webhook. To set one, run: sluice notice set ${slug} --url URL`, "not_found");
}

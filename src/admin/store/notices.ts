/** The WEBHOOK of an organization, as the store returns it and the verbs answer it: never its secret (docs/notices.md). */
import Type from "typebox";
import { id, instant } from "../../core/operations/fields.ts";
import { count, nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { Actor } from "../../core/store/directory.ts";
import type { Page, PageOf } from "../../core/store/page.ts";

export const Notices = Type.Object(
  {
    organization_id: id("org"),
    organization: Type.String({ description: "The organization's slug.", examples: ["acme"] }),
    url: Type.String({ examples: ["https://hooks.example.com/sluice"] }),
    shares: Type.Array(Type.Integer(), {
      description: "Percentages of a window's limit, ascending.",
      examples: [[80, 100]],
    }),
    key_expiry_days: Type.Integer({
      minimum: 0,
      description: "How long before a key expires; 0: never.",
      examples: [14],
    }),
    changed_at: instant("When this was set."),
    waiting: count(),
    problem: nullable(Type.String({ description: "Why the last notice that could not be delivered was not." })),
  },
  { $id: "Notices" },
);
export type Notices = Value<typeof Notices>;

export interface NoticeAdministration {
  /** Pages through the webhooks of organizations, in the order of their ids. */
  pageNoticeHooks(
    query: Page & {
      organizationId?: string | undefined;
      /** Only webhooks to which a recent notice could not be delivered. */
      undelivered?: boolean | undefined;
    },
  ): Promise<PageOf<Notices>>;
  noticeHook(organizationId: string): Promise<Notices | null>;
  /** The secret is used if there is no webhook yet, or if it `renews` the one before. */
  setNoticeHook(
    organizationId: string,
    settings: Pick<Notices, "url" | "shares" | "keyExpiryDays">,
    secret: { secret: string; renews: boolean },
    actor: Actor,
  ): Promise<{ hook: Notices; isNewSecret: boolean }>;
  /** Removes the webhook. Waiting notices are not sent any more. */
  removeNoticeHook(organizationId: string, actor: Actor): Promise<Notices | null>;
}

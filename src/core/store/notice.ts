/** NOTICES to organizations by webhook (docs/notices.md). Implemented by `postgres`. */
import type { Actor } from "./directory.ts";
import type { Page, PageOf } from "./page.ts";

export type NoticeKind = "usage.share_reached" | "organization.suspended" | "key.expiring";

export interface NoticeHookSettings {
  url: string;
  /** Percentages of a window's limit, ascending. */
  shares: number[];
  /** How long before a key expires; 0: never. */
  keyExpiryDays: number;
}

export interface NoticeHook extends NoticeHookSettings {
  organizationId: string;
  changedAt: Date;
  /** The number of notices that are neither delivered nor given up. */
  waiting: number;
  /** Why the last undelivered notice could not be delivered; null: every notice was. */
  problem: string | null;
}

export interface NoticeHookQuery extends Page {
  organizationId?: string | undefined;
  /** Only webhooks to which a recent notice could not be delivered. */
  isUndelivered?: boolean | undefined;
}

export interface NoticeAdministration {
  /** Pages through the webhooks of organizations, in the order of their ids. */
  pageNoticeHooks(query: NoticeHookQuery): Promise<PageOf<NoticeHook>>;
  noticeHook(organizationId: string): Promise<NoticeHook | null>;
  /** The secret is used if there is no webhook yet, or if it `renews` the one before. */
  setNoticeHook(
    organizationId: string,
    settings: NoticeHookSettings,
    secret: { secret: string; renews: boolean },
    actor: Actor,
  ): Promise<{ hook: NoticeHook; isNewSecret: boolean }>;
  /** Removes the webhook. Waiting notices are not sent any more. */
  removeNoticeHook(organizationId: string, actor: Actor): Promise<NoticeHook | null>;
}

/** A notice to send now. Until its lease ends, only this node has it. */
export interface DueNotice {
  /** `notice_` + 32 hex digits, by which receivers recognise a repeat. */
  id: string;
  organizationId: string;
  /** The organization's slug when the notice is sent. */
  organization: string;
  kind: NoticeKind;
  details: Record<string, unknown>;
  createdAt: Date;
  /** The number of attempts, this one included. */
  attempts: number;
  url: string;
  /** Null: it is sealed with a key that is not here. */
  secret: string | null;
}

export interface NoticeQueue {
  /** Finds new notices, once for all nodes. */
  look(): Promise<void>;
  /** Claims notices that are due, the oldest first. */
  claim(limit: number): Promise<DueNotice[]>;
  /** `problem` null: it was delivered. `again_ms` null: it is given up. */
  sent(notice: Pick<DueNotice, "id" | "attempts">, problem: string | null, again_ms: number | null): Promise<void>;
  /** Seals the secrets of webhooks that are in plain text, or sealed with an older key, if there is a key. */
  seal(): Promise<void>;
  /** Deletes what is older than any window. */
  forget(): Promise<void>;
}

/** NOTICES to organizations by webhook (docs/notices.md). Implemented by `postgres`. */

export type NoticeKind = "usage.share_reached" | "organization.suspended" | "key.expiring" | "limit.requested";

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

/** NOTICES to organizations by webhook (docs/notices.md). Implemented by `postgres`. */

export type NoticeKind = "usage.share_reached" | "organization.suspended" | "key.expiring";

/** A notice to send now. Until its lease ends, no other node sends it. */
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
  /** The webhook's secret; null if it is sealed with a key that this node lacks. */
  secret: string | null;
}

export interface NoticeQueue {
  /** Finds new notices, once for all nodes. */
  look(): Promise<void>;
  /** Claims notices that are due, the oldest first. */
  claim(limit: number): Promise<DueNotice[]>;
  /**
   * Records an attempt. `problem` null: the notice was delivered. `again_ms`: the wait until the next attempt; null:
   * there is none.
   */
  sent(notice: Pick<DueNotice, "id" | "attempts">, problem: string | null, again_ms: number | null): Promise<void>;
  /** Seals the secrets of webhooks that are in plain text, or sealed with an older key, if there is a key. */
  seal(): Promise<void>;
  /** Deletes notices that are older than any window. */
  forget(): Promise<void>;
}

/** The QUEUE of notices to organizations and operators (docs/notices.md). Implemented by `postgres`. */
import type { StoredReport } from "../../../core/store/fleet.ts";
import type { NoticeKind } from "../kinds.ts";

export type { NoticeKind } from "../kinds.ts";

export const noticeForms = ["json", "slack", "teams", "mail"] as const;
export type NoticeForm = (typeof noticeForms)[number];

/** The owner of destinations: the ID of an organization, or null for the operators. */
export type NoticeOwner = string | null;

/** A notice to add to the queue. Each destination gets a notice with the same `about` only once. */
export interface NewNotice {
  kind: NoticeKind;
  about: string;
  details: Record<string, unknown>;
}

/**
 * A state of the fleet that begins and ends. A notice is sent once the state has lasted for a while, and another
 * notice, of the kind `ends`, when the state is over. If `ends` is null, there is no second notice.
 */
export interface Condition extends NewNotice {
  ends: NoticeKind | null;
}

/** A notice that this node has claimed to send. Until its lease ends, no other node sends it. */
export interface DueNotice {
  /** `notice_` + 32 hex digits, by which receivers recognise a repeated delivery. */
  id: string;
  organizationId: NoticeOwner;
  /** The organization's current slug; null: the notice is about the fleet. */
  organization: string | null;
  kind: NoticeKind;
  details: Record<string, unknown>;
  createdAt: Date;
  /** The number of attempts, including the current one. */
  attempts: number;
  /** The name of the destination; for a notice to one person, that person's ID. */
  destination: string;
  form: NoticeForm;
  /** A URL, or e-mail addresses. Null: the address is encrypted with a key that this node does not have. */
  address: string | null;
  /** The recipients to whom the mail must still be sent. */
  recipients: readonly Recipient[];
  /**
   * The secret that signs JSON. Null: the secret is encrypted with a key that this node does not have, or the form
   * needs no secret.
   */
  secret: string | null;
}

export interface Recipient {
  address: string;
  /**
   * The secret in the recipient's unsubscribe link; null: there is no link, because the recipient administers the
   * destination.
   */
  unsubscribes: string | null;
}

export interface Delivery {
  /** One line that says why the notice was not delivered; null: it was delivered. */
  problem: string | null;
  /** Whether further attempts are pointless, because they would fail, too. Absent: false. */
  isFinal?: boolean;
  /** The recipients who need no further attempt. Absent: there are none. */
  settled?: readonly string[];
}

/** The subscription of one address to mails. The secret in an unsubscribe link lets the recipient end and renew it. */
export interface Subscription {
  /** The organization's slug; null: the notices are about the fleet. */
  organization: string | null;
  address: string;
  isSubscribed: boolean;
}

export interface Subscriptions {
  findSubscription(secret: string): Promise<Subscription | null>;
  subscribe(secret: string, isSubscribed: boolean): Promise<Subscription | null>;
}

export interface NoticeQueue {
  /**
   * Looks for new notices and adds them to the queue; one node at a time does this for all nodes. `conditions` derives
   * the fleet's current conditions from its reports.
   */
  look(conditions: (reports: readonly StoredReport[], now: Date) => readonly Condition[]): Promise<void>;
  /** Adds a notice to the queues of the operators' destinations. */
  add(notice: NewNotice): Promise<void>;
  /**
   * Claims notices that are due, the oldest notice of each destination first. `sending`: the ids of the notices that
   * this node is sending now. A node sends only a few notices to one destination at a time, so that a destination which
   * does not answer does not delay the others.
   */
  claim(limit: number, sending?: readonly string[]): Promise<DueNotice[]>;
  /**
   * Records an attempt. `again_ms`: the wait before the next attempt; null: if this attempt failed, there will be no
   * other.
   */
  sent(notice: Pick<DueNotice, "id" | "attempts">, delivery: Delivery, again_ms: number | null): Promise<void>;
  /**
   * If SLUICE_SECRET_KEY is set, encrypts the secrets of destinations that are in plain text or encrypted with an older
   * key.
   */
  seal(): Promise<void>;
  /** Deletes notices that are older than the longest possible usage window. */
  forget(): Promise<void>;
}

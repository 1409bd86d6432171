/** The QUEUE of notices to organizations and operators (docs/notices.md). Implemented by `postgres`. */
import type { StoredReport } from "../../../core/store/fleet.ts";
import type { NoticeKind } from "../kinds.ts";

export type { NoticeKind } from "../kinds.ts";

/** The forms in which notices are written and sent. */
export const noticeForms = ["json", "slack", "teams", "mail"] as const;
export type NoticeForm = (typeof noticeForms)[number];

/** Whose destinations get a notice: the ID of an organization, or null for the destinations of the operators. */
export type NoticeOwner = string | null;

/** A notice to add to the queue. Each destination gets a notice with the same `about` only once. */
export interface NewNotice {
  kind: NoticeKind;
  about: string;
  details: Record<string, unknown>;
}

/**
 * A state of the fleet that begins and ends. A notice is sent once the state has lasted for a while, and another, of
 * the kind `ends`, when the state is over. If `ends` is null, none is sent then.
 */
export interface Condition extends NewNotice {
  ends: NoticeKind | null;
}

/** A notice to send now. Until its lease ends, no other node sends it. */
export interface DueNotice {
  /** `notice_` + 32 hex digits, by which receivers recognise a repeat. */
  id: string;
  organizationId: NoticeOwner;
  /** The organization's slug when the notice is sent. */
  organization: string | null;
  kind: NoticeKind;
  details: Record<string, unknown>;
  createdAt: Date;
  /** The number of attempts, this one included. */
  attempts: number;
  /** The name of the destination; for a notice to one person, that person's ID. */
  destination: string;
  form: NoticeForm;
  /** A URL, or e-mail addresses. Null: it is encrypted with a key that this node does not have. */
  address: string | null;
  /** The recipients to whom the mail must still be sent. */
  recipients: readonly Recipient[];
  /**
   * The secret that signs JSON. Null: it is encrypted with a key that this node does not have, or the form needs none.
   */
  secret: string | null;
}

export interface Recipient {
  address: string;
  /** The secret of the link that unsubscribes; null: the address belongs to an administrator of the destination. */
  unsubscribes: string | null;
}

/** The outcome of an attempt. */
export interface Delivery {
  /** One line that says why the notice was not delivered; null: it was delivered. */
  problem: string | null;
  /** Whether another attempt would fail, too. Absent: it would not. */
  isFinal?: boolean;
  /** The recipients who need no further attempt. Absent: none. */
  settled?: readonly string[];
}

/** Whether an address gets mail. The secret in its unsubscribe link lets the recipient change that. */
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
  /** Finds new notices, once for all nodes. `conditions` derives the fleet's current conditions from its reports. */
  look(conditions: (reports: readonly StoredReport[], now: Date) => readonly Condition[]): Promise<void>;
  /** Adds a notice to the queues of the operators' destinations. */
  add(notice: NewNotice): Promise<void>;
  /**
   * Claims notices that are due, the oldest of each destination first. `sending`: the ids of those that the node sends
   * now. With them it has few of each destination, so that one that does not answer keeps no other waiting.
   */
  claim(limit: number, sending?: readonly string[]): Promise<DueNotice[]>;
  /**
   * Records an attempt. `again_ms`: the wait before the next attempt; null: if there was a problem, the notice is given
   * up.
   */
  sent(notice: Pick<DueNotice, "id" | "attempts">, delivery: Delivery, again_ms: number | null): Promise<void>;
  /**
   * If there is a key for encryption, encrypts the secrets of destinations that are in plain text or encrypted with an
   * older key.
   */
  seal(): Promise<void>;
  /** Deletes notices that are older than the longest possible usage window. */
  forget(): Promise<void>;
}

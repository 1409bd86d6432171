/** The QUEUE of notices to organizations and operators (docs/notices.md). Implemented by `postgres`. */
import type { StoredReport } from "../../../core/store/fleet.ts";
import type { NoticeKind } from "../kinds.ts";

export type { NoticeKind } from "../kinds.ts";

/** How a notice is written and sent. */
export const noticeForms = ["json", "slack", "teams", "mail"] as const;
export type NoticeForm = (typeof noticeForms)[number];

/** Whose destinations hear of it: the ID of an organization, or null for those of the operators. */
export type NoticeOwner = string | null;

/** The same `about` is told once to each destination. */
export interface NewNotice {
  kind: NoticeKind;
  about: string;
  details: Record<string, unknown>;
}

/** A state that lasts for a while: told when it has lasted, and again, as `ends`, when it is over; null: its end is not told. */
export interface Condition extends NewNotice {
  ends: NoticeKind | null;
}

/** A notice to send now. Until its lease ends, only this node has it. */
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
  /** The name of the destination; of a notice to one person, their ID. */
  destination: string;
  form: NoticeForm;
  /** A URL, or addresses of mail. Null: it is sealed with a key that is not here. */
  address: string | null;
  /** Whom a mail still goes to. */
  recipients: readonly Recipient[];
  /** The secret that signs JSON. Null: it is sealed with a key that is not here, or the form has none. */
  secret: string | null;
}

export interface Recipient {
  address: string;
  /** The secret of the link that unsubscribes; null: it is the own address of somebody who administers the destination. */
  unsubscribes: string | null;
}

/** The outcome of an attempt. */
export interface Delivery {
  /** Null: it was delivered. Else one line that says why not. */
  problem: string | null;
  /** Whether another attempt would fail, too. Absent: it would not. */
  isFinal?: boolean;
  /** The recipients for whom nothing is left to do. Absent: none. */
  settled?: readonly string[];
}

/** Whether an address gets mail. The secret in its unsubscribe link lets the recipient change that. */
export interface Subscription {
  /** The organization's slug; null: the notices are of the fleet. */
  organization: string | null;
  address: string;
  isSubscribed: boolean;
}

export interface Subscriptions {
  findSubscription(secret: string): Promise<Subscription | null>;
  subscribe(secret: string, isSubscribed: boolean): Promise<Subscription | null>;
}

export interface NoticeQueue {
  /** Finds new notices, once for all nodes. `conditions` has those of the fleet now, by its reports. */
  look(conditions: (reports: readonly StoredReport[], now: Date) => readonly Condition[]): Promise<void>;
  /** Adds a notice to the queues of the operators' destinations. */
  add(notice: NewNotice): Promise<void>;
  /** Claims notices that are due, the oldest first. */
  claim(limit: number): Promise<DueNotice[]>;
  /** `again_ms` null: it is given up, if there was a problem. */
  sent(notice: Pick<DueNotice, "id" | "attempts">, delivery: Delivery, again_ms: number | null): Promise<void>;
  /** Seals the secrets of destinations that are in plain text, or sealed with an older key, if there is a key. */
  seal(): Promise<void>;
  /** Deletes what is older than any window. */
  forget(): Promise<void>;
}

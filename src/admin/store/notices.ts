/**
 * DESTINATIONS of notices, as the store and the verbs of management return them: never with a secret. If the address
 * itself is a secret, only its host is returned (docs/notices.md).
 */
import Type from "typebox";
import { id, instant } from "../../core/operations/fields.ts";
import { count, nullable, oneOf } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";
import type { Actor } from "../../core/store/directory.ts";
import { type NoticeOwner, noticeForms } from "../../features/notices/store/notice.ts";
import type { Page, PageOf } from "./page.ts";

export const NoticeDestination = Type.Object(
  {
    id: id("dest"),
    organization_id: nullable(id("org")),
    organization: nullable(
      Type.String({
        description: "The organization's slug. Null: the operators', which hears of the fleet.",
        examples: ["acme"],
      }),
    ),
    name: Type.String({ description: "Unique in its organization.", examples: ["webhook"] }),
    form: oneOf([...noticeForms], {
      description: "How notices are written: signed JSON, a message in Slack or Teams, or mail.",
    }),
    url: nullable(
      Type.String({
        description: "Of the form json alone: the URL of another is a secret.",
        examples: ["https://hooks.example.com/sluice"],
      }),
    ),
    host: Type.String({
      description: "The host of the URL, or the addresses of mail.",
      examples: ["hooks.example.com"],
    }),
    to: nullable(
      Type.Array(Type.String(), { description: "The addresses of the form mail; null: it has another form." }),
    ),
    unsubscribed: Type.Array(Type.String(), {
      description: "Those of them that have unsubscribed, and get nothing.",
      examples: [[]],
    }),
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
  { $id: "NoticeDestination" },
);
export type NoticeDestination = Value<typeof NoticeDestination>;

export interface DestinationSettings extends Pick<NoticeDestination, "form" | "host" | "shares" | "keyExpiryDays"> {
  /** A URL, or addresses of mail with commas between them; null: the address and the host stay as they are. */
  address: string | null;
}

/**
 * The most tests of one destination in an hour. They are bounded because each calls another server, or sends mail to
 * other people.
 */
export const tests_max = 20;

export interface NoticeAdministration {
  /** Whether SLUICE_SECRET_KEY is set, which encrypts the addresses that are secrets. */
  canSeal: boolean;
  /**
   * Pages through destinations in the order of their ids: the destinations of one organization, or all, including the
   * operators'.
   */
  pageDestinations(
    query: Page & {
      organizationId?: string | undefined;
      /** Only destinations to which a recent notice could not be delivered. */
      undelivered?: boolean | undefined;
    },
  ): Promise<PageOf<NoticeDestination>>;
  findDestination(owner: NoticeOwner, name: string): Promise<NoticeDestination | null>;
  /**
   * Creates or changes a destination. `settings` returns the new settings for the current ones (null: the destination
   * is new); the destination is locked meanwhile. A new destination gets the given ID and secret. An existing
   * destination keeps its ID and secret; with `renews`, it gets the given secret.
   */
  setDestination(
    owner: NoticeOwner,
    name: string,
    settings: (before: NoticeDestination | null) => DestinationSettings,
    secret: { id: string; secret: string; renews: boolean },
    actor: Actor,
  ): Promise<{ destination: NoticeDestination; isNewSecret: boolean }>;
  /** Removes the destination. Waiting notices are not sent any more. */
  removeDestination(owner: NoticeOwner, name: string, actor: Actor): Promise<NoticeDestination | null>;
  /**
   * Adds a test notice to the queue of the destination, and returns the UUID of the notice. `waiting`: an earlier test
   * has no outcome yet. `too_many`: there were `tests_max` tests within an hour.
   */
  addTest(destination: NoticeDestination, actor: Actor): Promise<{ id: string } | "waiting" | "too_many">;
  /** The outcome of a notice so far; null: the notice no longer exists. */
  outcome(noticeId: string): Promise<{ isDelivered: boolean; problem: string | null } | null>;
}

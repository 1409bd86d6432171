/**
 * The kinds of notices, with the message that people read for each kind. To add a kind, add one entry here, and let the
 * code that detects the event add a notice with its details to the queue (store/notice.ts). All forms of notices derive
 * from these messages. Pure.
 */
import { inWords, type Money } from "../../core/inference/money.ts";

/**
 * A notice as people read it. Names that people chose are not escaped here: each form (Slack, Teams, mail) escapes the
 * texts that it shows.
 */
export interface Message {
  tone: "good" | "warning" | "bad";
  title: string;
  facts: readonly (readonly [name: string, value: string | Date | null])[];
  /** The path of the console's page about the subject of the message; null: there is none. */
  page: string | null;
}

export interface NoticeFacts {
  /** The slug of the organization; null: the notice is about the fleet. */
  organization: string | null;
  details: Readonly<Record<string, unknown>>;
}

const kinds = {
  "usage.share_reached": shareReached,
  "organization.suspended": ({ organization }) => ({
    tone: "bad",
    title: `The organization ${organization} was suspended`,
    facts: [["What it means", "Its requests are refused until it is resumed."]],
    page: pageOf(organization),
  }),
  "key.expiring": ({ organization, details }) => ({
    tone: "warning",
    title: `The key ${text(details.name)} of ${organization} expires soon`,
    facts: [
      ["Expires", instant(details.expires_at)],
      ["Key", text(details.key_id)],
    ],
    page: `/keys/${text(details.key_id)}`,
  }),
  "limit.requested": ({ organization, details }) => ({
    tone: "warning",
    title: `${text(details.person)} of ${organization} asks for more`,
    facts: [
      ["Limit", limitAsked(details)],
      ["Is now", amount(details.value)],
      ["Asked for", details.asked === null ? null : amount(details.asked)],
      ["Why", text(details.message)],
    ],
    page: `/limit-requests/${text(details.limit_request_id)}`,
  }),
  "limit.decided": ({ details }) => ({
    tone: details.state === "approved" ? "good" : "bad",
    title: `Your request for more in ${text(details.organization)} was ${details.state}`,
    facts: [
      ["Limit", limitAsked(details)],
      ["Was", amount(details.value)],
      ["Is now", details.granted === null ? null : amount(details.granted)],
      ["Until", instant(details.until)],
      ["Why", details.reason === null ? null : text(details.reason)],
    ],
    page: `/limit-requests/${text(details.limit_request_id)}`,
  }),
  "engine.down": ({ details }) => ({
    tone: "bad",
    title: `The engine ${text(details.upstream)} is down`,
    facts: [
      ["Seen by", words(details.nodes)],
      ["Since", instant(details.since)],
    ],
    page: "/engines",
  }),
  "engine.up": ({ details }) => ({
    tone: "good",
    title: `The engine ${text(details.upstream)} is back`,
    facts: [["Was down since", instant(details.since)]],
    page: "/engines",
  }),
  "engine.stray_answer": ({ details }) => ({
    tone: "bad",
    title: `The engine ${text(details.upstream)} sent an answer that nobody asked for`,
    facts: [
      ["What to do", "Look for upstream_stray_answer in the log. Set reuse of the engine to none until it is mended."],
    ],
    page: "/engines",
  }),
  "certificate.expiring": ({ details }) => ({
    tone: "warning",
    title: `The certificate of ${words(details.nodes)} expires soon`,
    facts: [
      ["Expires", instant(details.expires_at)],
      ["What to do", "Put a new one in the place of its files."],
    ],
    page: "/nodes",
  }),
  "node.failing": ({ details }) => ({
    tone: "bad",
    title: `The node ${text(details.node)} has a problem`,
    facts: [
      ["Problem", words(details.problems, "; ")],
      ["Since", instant(details.since)],
    ],
    page: "/nodes",
  }),
  "node.settled": ({ details }) => ({
    tone: "good",
    title: `The node ${text(details.node)} has no problem any more, or is gone`,
    facts: [["Problem was", words(details.problems, "; ")]],
    page: "/nodes",
  }),
  "notice.test": ({ organization }) => ({
    tone: "good",
    title: organization === null ? "A test of notices of the fleet" : `A test of notices of ${organization}`,
    facts: [["What it means", "Notices arrive here."]],
    page: organization === null ? null : `${pageOf(organization)}/notices`,
  }),
} as const satisfies Record<string, (told: NoticeFacts) => Message>;

export type NoticeKind = keyof typeof kinds;

export const noticeKinds = Object.keys(kinds) as NoticeKind[];

export function messageOf(kind: NoticeKind, told: NoticeFacts): Message {
  return kinds[kind](told);
}

function shareReached({ organization, details }: NoticeFacts): Message {
  const { subject, models, window, share_percent: share } = details;
  const whose = subject === "organization" ? organization : `${subject} ${text(details.name)} of ${organization}`;
  const forModels = models === null ? "" : ` for ${text(models)}`;
  const isFull = Number(share) >= 100;
  return {
    tone: isFull ? "bad" : "warning",
    title: isFull
      ? `The limit of the ${window}${forModels} of ${whose} is reached`
      : `${share} % of the limit of the ${window}${forModels} of ${whose} are used`,
    facts: [
      ["Used", inWords(details.used as Money)],
      ["Limit", inWords(details.limit as Money)],
      ["At this pace full", instant(details.full_at)],
      ["Starts anew", instant(details.reset_at)],
    ],
    page: `${pageOf(organization)}/limits`,
  };
}

const limitAsked = ({ subject, limit, models }: NoticeFacts["details"]) =>
  `${text(subject)}, ${text(limit)}${models === null ? "" : ` for ${text(models)}`}`;
const pageOf = (organization: string | null) => `/organizations/${organization}`;
const text = (value: unknown) => String(value ?? "");
const words = (value: unknown, between = ", ") => (Array.isArray(value) ? value.map(text).join(between) : text(value));
/** The text of an amount: money, or a number of requests or tokens. */
const amount = (value: unknown) => (typeof value === "number" ? String(value) : inWords(value as Money));
const instant = (value: unknown) => (typeof value === "string" ? new Date(value) : null);

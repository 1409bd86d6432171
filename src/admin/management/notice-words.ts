/** Destinations of notices as the command line shows them, and the text that is shown if there is none. Pure. */
import { maskedUrl } from "../../core/inference/masked.ts";
import type { NoticeDestination } from "../store/notices.ts";
import type { Column, Facts } from "./command.ts";
import { fail } from "./error.ts";
import { shellWord } from "./shell-word.ts";

export const destination_default = "webhook";

/** The owner of a destination, in words. */
export const whose = ({ organization }: Pick<NoticeDestination, "organization">) => organization ?? "the operators";

const shownAt = ({ url, host }: NoticeDestination) => (url === null ? host : maskedUrl(url));

export function destinationFacts(one: NoticeDestination): Facts {
  return [
    ["organization", one.organization ?? "none: notices of the fleet"],
    ["name", one.name],
    ["id", one.id],
    ["form", one.form],
    [one.to !== null ? "to" : one.url === null ? "host" : "url", shownAt(one)],
    ...(one.unsubscribed.length === 0 ? [] : [["unsubscribed", one.unsubscribed.join(", ")] as const]),
    ["shares", one.shares.map((share) => `${share} %`).join(", ") || "none"],
    ["keys expire", one.keyExpiryDays === 0 ? "no notice" : `notice ${one.keyExpiryDays} days before`],
    ["waiting", String(one.waiting)],
    ["problem", one.problem ?? "none"],
  ];
}

export const destinationColumns: Column<NoticeDestination>[] = [
  { head: "ORGANIZATION", cell: ({ organization }) => organization ?? "(fleet)" },
  { head: "NAME", cell: ({ name }) => name },
  { head: "FORM", cell: ({ form }) => form },
  { head: "TO", cell: shownAt, breaks: true },
  { head: "WAITING", cell: ({ waiting }) => String(waiting) },
  { head: "PROBLEM", cell: ({ problem }) => problem ?? "", breaks: true },
];

export function noDestination(organization: string | null, name: string): never {
  const named = name === destination_default ? "" : ` --name ${shellWord(name)}`;
  const what = name === destination_default ? "no webhook" : `no destination of notices '${name}'`;
  const command = `sluice notice set${organization === null ? "" : ` ${organization}`}${named} --url URL`;
  const who = organization === null ? "There is" : `${organization} has`;
  const ofFleet = organization === null ? " for the fleet" : "";
  return fail(`${who} ${what}${ofFleet}. To set one, run: ${command}`, "resource_not_found");
}

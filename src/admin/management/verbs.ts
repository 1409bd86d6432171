/**
 * THE VERBS: all that an administrator can do. The API, the console and the command line derive from this list, so a
 * verb that is not in it does not exist. To add a verb, add it to the list of its subject; to add a subject, add its
 * list here.
 */
import { auditVerbs } from "./audit.ts";
import { calendarVerbs } from "./calendars.ts";
import { configurationVerbs } from "./configuration.ts";
import { consoleVerbs } from "./console.ts";
import { fleetVerbs } from "./fleet.ts";
import { invitationVerbs } from "./invitations.ts";
import { keyVerbs } from "./keys.ts";
import { limitRequestVerbs } from "./limit-requests.ts";
import { limitVerbs } from "./limits.ts";
import { membershipVerbs } from "./memberships.ts";
import { modelVerbs } from "./models.ts";
import { noticeVerbs } from "./notices.ts";
import { operatorVerbs } from "./operators.ts";
import { organizationChangeVerbs } from "./organization-changes.ts";
import { organizationPlanVerbs } from "./organization-plan.ts";
import { organizationVerbs } from "./organizations.ts";
import { personVerbs } from "./people.ts";
import { planVerbs } from "./plans.ts";
import { reportVerbs } from "./reports.ts";
import { requestListVerbs } from "./request-list.ts";
import { requestVerbs } from "./requests.ts";
import { searchVerbs } from "./search.ts";
import { teamVerbs } from "./teams.ts";
import { upstreamReportVerbs } from "./upstream-report.ts";
import { upstreamVerbs } from "./upstreams.ts";
import { usageVerbs } from "./usage.ts";
import type { AnswerOf, GivenTo, Verb } from "./verb.ts";

/** The verbs, in the order of the contract. */
const listed = [
  ...organizationVerbs,
  ...organizationChangeVerbs,
  ...organizationPlanVerbs,
  ...calendarVerbs,
  ...keyVerbs,
  ...teamVerbs,
  ...limitVerbs,
  ...limitRequestVerbs,
  ...usageVerbs,
  ...requestListVerbs,
  ...requestVerbs,
  ...reportVerbs,
  ...planVerbs,
  ...modelVerbs,
  ...upstreamVerbs,
  ...upstreamReportVerbs,
  ...fleetVerbs,
  ...configurationVerbs,
  ...noticeVerbs,
  ...auditVerbs,
  ...operatorVerbs,
  ...personVerbs,
  ...membershipVerbs,
  ...invitationVerbs,
  ...searchVerbs,
  ...consoleVerbs,
] as const;

type ListedVerb = (typeof listed)[number];
export type VerbName = ListedVerb["name"];
export type VerbNamed<Name extends VerbName> = Extract<ListedVerb, { name: Name }>;
export type VerbAnswer<Name extends VerbName> = AnswerOf<VerbNamed<Name>>;

/** A client: a function for each verb, by its name. */
export type Management = {
  [Name in VerbName]: (...given: Arguments<GivenTo<VerbNamed<Name>>>) => Promise<VerbAnswer<Name>>;
};
type Arguments<Given> = object extends Given ? [given?: Given] : [given: Given];

export const verbs: readonly Verb[] = listed as unknown as readonly Verb[];

export function verbNamed<Name extends VerbName>(name: Name): VerbNamed<Name> {
  return listed.find((one) => one.name === name) as VerbNamed<Name>;
}

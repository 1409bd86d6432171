/** THE PAGES: each with its address, its name in the navigation, and the verb that one needs to see it. */
import type { FunctionComponent } from "preact";
import type { VerbName } from "./core/client.ts";
import { may, membership, session } from "./core/session.ts";
import { later } from "./later.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { ConnectPage } from "./pages/connect.tsx";
import { KeyPage } from "./pages/key.tsx";
import { LimitRequestPage } from "./pages/limit-request.tsx";
import { NodesPage } from "./pages/nodes.tsx";
import { NowPage } from "./pages/now.tsx";
import { OperatorsPage } from "./pages/operators.tsx";
import { OrganizationPage } from "./pages/organization.tsx";
import { OrganizationsPage } from "./pages/organizations.tsx";
import { OwnPage } from "./pages/own.tsx";
import { PeoplePage } from "./pages/people.tsx";
import { PersonPage } from "./pages/person.tsx";
import { PlanPage, PlansPage } from "./pages/plans.tsx";
import { RequestPage } from "./pages/request.tsx";
import { RequestsPage } from "./pages/requests.tsx";
import { TeamPage } from "./pages/team.tsx";

export interface PageProps {
  /** The thing that the address names after the page's path, and after it the part of its page; empty: the first part. */
  id: string;
  tab: string;
}

export interface PageEntry {
  path: string;
  name: string;
  /** The key that goes to it, after `g`. */
  key?: string;
  /** Null: everybody sees it. */
  needs: VerbName | null;
  /** Whether it is for people in an organization alone. */
  isOwn?: boolean;
  /** Absent: it is not in the navigation, since each thing is reached from another page, in which part the navigation shows it. */
  list?: FunctionComponent;
  under?: string;
  /** The page of one thing. With parts, the address names the thing and then the part; else the thing is all of its rest. */
  hasParts?: true;
  one?: FunctionComponent<PageProps>;
}

export const isSeen = ({ needs, isOwn }: PageEntry) =>
  (needs === null || may(needs)) && (!isOwn || (session.value?.kind === "person" && membership.value !== null));

/** Those that have charts. */
const UsagePage = later((charts) => charts.UsagePage);
const EnginesPage = later((charts) => charts.EnginesPage);
const EnginePage = later((charts) => charts.EnginePage);
const ModelsPage = later((charts) => charts.ModelsPage);
const ModelPage = later((charts) => charts.ModelPage);

export const pages: readonly PageEntry[] = [
  { path: "/", name: "Now", key: "n", needs: "getFleet", list: NowPage },
  { path: "/you", name: "Overview", key: "y", needs: "findPersonLimits", isOwn: true, list: OwnPage },
  { path: "/usage", name: "Usage", key: "u", needs: "reportUsage", list: UsagePage },
  { path: "/requests", name: "Requests", key: "r", needs: "pageRequests", list: RequestsPage, one: RequestPage },
  {
    path: "/organizations",
    name: "Organizations",
    key: "o",
    needs: "pageOrganizations",
    list: OrganizationsPage,
    hasParts: true,
    one: OrganizationPage,
  },
  { path: "/engines", name: "Engines", key: "e", needs: "getFleet", list: EnginesPage, one: EnginePage },
  { path: "/models", name: "Models", key: "m", needs: "listModels", list: ModelsPage, one: ModelPage },
  { path: "/nodes", name: "Nodes", key: "d", needs: "listNodes", list: NodesPage },
  { path: "/plans", name: "Plans", key: "p", needs: "listPlans", list: PlansPage, one: PlanPage },
  { path: "/people", name: "People", key: "h", needs: "pagePeople", list: PeoplePage, hasParts: true, one: PersonPage },
  { path: "/operators", name: "Operators", key: "t", needs: "pageOperators", list: OperatorsPage },
  { path: "/audit", name: "Audit", key: "a", needs: "pageAudit", list: AuditPage },
  { path: "/teams", name: "Team", needs: "findTeam", under: "/organizations", hasParts: true, one: TeamPage },
  { path: "/keys", name: "Key", needs: "findKey", under: "/organizations", hasParts: true, one: KeyPage },
  {
    path: "/limit-requests",
    name: "Request for more",
    needs: "findLimitRequest",
    under: "/organizations",
    one: LimitRequestPage,
  },
  { path: "/connect", name: "Connect", key: "c", needs: null, list: ConnectPage },
];

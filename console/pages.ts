/** All pages: each with its address, its name in the navigation, and the verb that a reader needs to see it. */
import type { FunctionComponent } from "preact";
import type { VerbName } from "./core/client.ts";
import { may, membership, session } from "./core/session.ts";
import { later } from "./later.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { ConnectPage } from "./pages/connect.tsx";
import { KeyPage } from "./pages/key.tsx";
import { LimitRequestPage } from "./pages/limit-request.tsx";
import { NodesPage } from "./pages/nodes.tsx";
import { NoticesPage } from "./pages/notices.tsx";
import { NowPage } from "./pages/now.tsx";
import { KeysPage, PeoplePage, TeamsPage } from "./pages/of-all.tsx";
import { OperatorsPage } from "./pages/operators.tsx";
import { OrganizationPage } from "./pages/organization.tsx";
import { OrganizationsPage } from "./pages/organizations.tsx";
import { OwnPage } from "./pages/own.tsx";
import { PersonPage } from "./pages/person.tsx";
import { PlanPage, PlansPage } from "./pages/plans.tsx";
import { RequestPage } from "./pages/request.tsx";
import { RequestsPage } from "./pages/requests.tsx";
import { TeamPage } from "./pages/team.tsx";

export interface PageProps {
  /**
   * The id of the thing, such as a key, that the address has after the page's path. `tab` is the tab of the page, which
   * follows the id in the address; empty: the first tab.
   */
  id: string;
  tab: string;
}

export interface PageEntry {
  path: string;
  name: string;
  /** The key that opens the page when it is pressed after `g`. */
  key?: string;
  /** The verb that a reader must be allowed to call to see the page. Null: everybody sees it. */
  needs: VerbName | null;
  /** Whether the page is only for people in an organization. */
  isOwn?: boolean;
  /** The page for an address without an id. Absent: the page is not in the navigation. */
  list?: FunctionComponent;
  /** The verb that a reader needs to see the list. Absent: each reader who may see one thing may see the list. */
  listNeeds?: VerbName;
  /**
   * Whether the page of one thing has tabs: the address then has the thing's id and the tab. Absent: all of the address
   * after the page's path is the id, which may have slashes.
   */
  hasParts?: true;
  one?: FunctionComponent<PageProps>;
}

/** Whether the page is in the navigation. */
export const isListed = ({ list, listNeeds }: PageEntry) =>
  list !== undefined && (listNeeds === undefined || may(listNeeds));

export const isSeen = ({ needs, isOwn }: PageEntry) =>
  (needs === null || may(needs)) && (!isOwn || (session.value?.kind === "person" && membership.value !== null));

/** The pages that have charts, which are loaded later. */
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
  { path: "/teams", name: "Teams", key: "w", needs: "findTeam", list: TeamsPage, hasParts: true, one: TeamPage },
  { path: "/people", name: "People", key: "h", needs: "pagePeople", list: PeoplePage, hasParts: true, one: PersonPage },
  {
    path: "/keys",
    name: "Keys",
    key: "k",
    needs: "findKey",
    list: KeysPage,
    listNeeds: "pagePeople",
    hasParts: true,
    one: KeyPage,
  },
  { path: "/engines", name: "Engines", key: "e", needs: "getFleet", list: EnginesPage, one: EnginePage },
  { path: "/models", name: "Models", key: "m", needs: "listModels", list: ModelsPage, one: ModelPage },
  { path: "/nodes", name: "Nodes", key: "d", needs: "listNodes", list: NodesPage },
  { path: "/plans", name: "Plans", key: "p", needs: "listPlans", list: PlansPage, one: PlanPage },
  { path: "/operators", name: "Operators", key: "t", needs: "pageOperators", list: OperatorsPage },
  { path: "/notices", name: "Notices", key: "i", needs: "getFleet", list: NoticesPage },
  { path: "/audit", name: "Audit", key: "a", needs: "pageAudit", list: AuditPage },
  { path: "/limit-requests", name: "Request for more", needs: "findLimitRequest", one: LimitRequestPage },
  { path: "/connect", name: "Connect", key: "c", needs: null, list: ConnectPage },
];

/** THE PAGES: each with its address, its name in the navigation, and the verb that one needs to see it. */
import type { FunctionComponent } from "preact";
import type { VerbName } from "./core/client.ts";
import { later } from "./later.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { ConnectPage } from "./pages/connect.tsx";
import { NodesPage } from "./pages/nodes.tsx";
import { NowPage } from "./pages/now.tsx";
import { OperatorsPage } from "./pages/operators.tsx";
import { OrganizationPage } from "./pages/organization.tsx";
import { OrganizationsPage } from "./pages/organizations.tsx";
import { PeoplePage, PersonPage } from "./pages/people.tsx";
import { PlanPage, PlansPage } from "./pages/plans.tsx";
import { RequestPage } from "./pages/request.tsx";
import { RequestsPage } from "./pages/requests.tsx";

export interface PageProps {
  /** The part of the address after the page's path. */
  id: string;
}

export interface PageEntry {
  path: string;
  name: string;
  /** The key that goes to it, after `g`. */
  key: string;
  /** Null: everybody sees it. */
  needs: VerbName | null;
  list: FunctionComponent;
  /** The page of one thing. */
  one?: FunctionComponent<PageProps>;
}

/** Those that have charts. */
const UsagePage = later((charts) => charts.UsagePage);
const EnginesPage = later((charts) => charts.EnginesPage);
const EnginePage = later((charts) => charts.EnginePage);
const ModelsPage = later((charts) => charts.ModelsPage);
const ModelPage = later((charts) => charts.ModelPage);

export const pages: readonly PageEntry[] = [
  { path: "/", name: "Now", key: "n", needs: "getFleet", list: NowPage },
  { path: "/usage", name: "Usage", key: "u", needs: "reportUsage", list: UsagePage },
  { path: "/requests", name: "Requests", key: "r", needs: "pageRequests", list: RequestsPage, one: RequestPage },
  {
    path: "/organizations",
    name: "Organizations",
    key: "o",
    needs: "pageOrganizations",
    list: OrganizationsPage,
    one: OrganizationPage,
  },
  { path: "/engines", name: "Engines", key: "e", needs: "getFleet", list: EnginesPage, one: EnginePage },
  { path: "/models", name: "Models", key: "m", needs: "listModels", list: ModelsPage, one: ModelPage },
  { path: "/nodes", name: "Nodes", key: "d", needs: "listNodes", list: NodesPage },
  { path: "/plans", name: "Plans", key: "p", needs: "listPlans", list: PlansPage, one: PlanPage },
  { path: "/people", name: "People", key: "h", needs: "pagePeople", list: PeoplePage, one: PersonPage },
  { path: "/operators", name: "Operators", key: "t", needs: "pageOperators", list: OperatorsPage },
  { path: "/audit", name: "Audit", key: "a", needs: "pageAudit", list: AuditPage },
  { path: "/connect", name: "Connect", key: "c", needs: null, list: ConnectPage },
];

/** The spend of one thing on its page. Its chart is loaded when somebody opens one. */
import { later } from "../later.tsx";

export const Spend = later(() => import("../charts.ts").then((charts) => charts.SubjectSpend));

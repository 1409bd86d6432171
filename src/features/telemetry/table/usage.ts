/** Metrics of usage: holds, settlements, the ledger's tables, engines' reports, and the largest organizations. Pure. */
import { bounds, type MetricTable } from "../metric.ts";
import { nearShares, standingSubjects } from "../store/standing.ts";

/**
 * The highest allowed value of the setting `metrics.organizations_max`. Organizations beyond that are counted as
 * `other`.
 */
export const organizations_max = 1000;

export const usageMetrics = {
  usage_cost_total: {
    type: "counter",
    help: "Approximate cost of settled requests, in the service's currency, charged or uncharged.",
    labels: { class: ["charged", "uncharged"] },
  },
  usage_organization_cost: {
    type: "gauge",
    help: "Approximate cost of an organization's requests on this node in the last hour.",
    labels: { organization: organizations_max },
  },
  usage_organization_requests: {
    type: "gauge",
    help: "Requests of an organization that ended on this node in the last hour.",
    labels: { organization: organizations_max },
  },
  usage_subjects_near_limit: {
    type: "gauge",
    across: "max",
    help: "Organizations, teams, people and keys that have used at least this percentage of a window's limit.",
    labels: { subject: Object.keys(standingSubjects), percent: nearShares.map(String) },
  },
  usage_holds: {
    type: "gauge",
    help: "Requests of this node with a hold on usage.",
  },
  usage_settlement_waiting: {
    type: "gauge",
    help: "Ended requests whose settlement the database has not confirmed yet.",
  },
  usage_recovered_total: {
    type: "counter",
    help: "Lapsed holds of dead nodes that this node has settled.",
  },
  usage_settled_late_total: {
    type: "counter",
    help: "Requests recovered by others, of which this node booked the rest.",
  },
  usage_reports_rejected_total: {
    type: "counter",
    help: "Token reports of engines that were not believed, by half (input or output) and kind.",
    labels: { upstream: bounds.upstream, half: ["input", "output"], kind: 16 },
  },
  usage_report_divergence: {
    type: "gauge",
    across: "worker",
    help: "Output tokens that engines reported divided by Sluice's count, of the last 256 answers.",
    labels: { model: bounds.model, statistic: ["p50", "p99"] },
  },
  usage_receipts_lost_total: {
    type: "counter",
    help: "Confirmed settlements that the database lost, as this node noticed first.",
  },
  usage_ledger_mismatch: {
    type: "gauge",
    across: "max",
    help: "Totals of recent windows that differ from their records, at the last hourly check.",
  },
  usage_seals_behind: {
    type: "gauge",
    across: "max",
    help: "Ended windows that the last hourly check could not seal.",
  },
  usage_partitions_ahead: {
    type: "gauge",
    across: "max",
    help: "Coming months that have a partition for records; 6 at best.",
  },
} as const satisfies MetricTable;

/** Metrics of usage: holds, settlements, books, reports, and the largest organizations. Pure. */
import { nearShares, standingSubjects } from "../../../core/store/standing.ts";
import { bounds, type MetricTable } from "../metric.ts";

/** The highest allowed value of the setting `metrics.organizations_max`, and one for `other`. */
export const organizations_max = 1000;

export const usageMetrics = {
  usage_cost_total: {
    type: "counter",
    help: "The cost of requests that this node has settled, in the service's currency: charged, or not charged because no limit had room for them. Approximate: reports have the exact sums.",
    question: "What is earned, and what is given away?",
    labels: { class: ["charged", "uncharged"] },
  },
  usage_organization_cost: {
    type: "gauge",
    help: "The cost of an organization's requests that ended on this node in the last hour, in the service's currency, approximately: the largest by that, and the others together.",
    question: "Who uses most?",
    labels: { organization: organizations_max },
  },
  usage_organization_requests: {
    type: "gauge",
    help: "The number of those requests.",
    question: "Who sends most?",
    labels: { organization: organizations_max },
  },
  usage_subjects_near_limit: {
    type: "gauge",
    across: "max",
    help: "Organizations, teams, people and keys that have used this percentage of a limit of a window, or more, one for models included, as of the last minute.",
    question: "How many will soon be refused?",
    labels: { subject: Object.keys(standingSubjects), percent: nearShares.map(String) },
  },
  usage_holds: {
    type: "gauge",
    help: "Requests of this node with a hold on usage.",
    question: "How many requests run?",
  },
  usage_settlement_waiting: {
    type: "gauge",
    help: "Ended requests whose settlement the database has not confirmed yet.",
    question: "Does usage wait in memory?",
  },
  usage_recovered_total: {
    type: "counter",
    help: "Lapsed holds of dead nodes that this node has settled, streams at their last checkpoint and others at 0.",
    question: "Do nodes die?",
  },
  usage_settled_late_total: {
    type: "counter",
    help: "Requests that another node had recovered, and of which this node has booked what was missing.",
    question: "Were nodes cut off from the database while they forwarded?",
  },
  usage_reports_rejected_total: {
    type: "counter",
    help: "Reports of engines that were not taken as they are, by upstream, half (input or output) and kind.",
    question: "Which engine miscounts?",
    labels: { upstream: bounds.upstream, half: ["input", "output"], kind: 16 },
  },
  usage_report_divergence: {
    type: "gauge",
    across: "worker",
    help: "Output tokens that engines reported divided by those that were counted, of the last 256 complete answers of a public model, by statistic.",
    question: "Do engines and Sluice count alike?",
    labels: { model: bounds.model, statistic: ["p50", "p99"] },
  },
  usage_receipts_lost_total: {
    type: "counter",
    help: "Settlements that the database had confirmed and did not have any more, as this node was the first to notice.",
    question: "Did a failover lose usage?",
  },
  usage_ledger_mismatch: {
    type: "gauge",
    across: "max",
    help: "Totals of recent windows that differ from the sum of their records, at the last hourly check.",
    question: "Are the books right?",
  },
  usage_seals_behind: {
    type: "gauge",
    across: "max",
    help: "Ended windows that the last hourly check could not seal yet: a request still runs that began in them, or they differ.",
    question: "Do requests never end?",
  },
  usage_partitions_ahead: {
    type: "gauge",
    across: "max",
    help: "Coming months that have a partition for their records, 6 at best, at the last hourly upkeep.",
    question: "Does upkeep work?",
  },
} as const satisfies MetricTable;

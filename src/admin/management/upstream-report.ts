/** The report of how engines answered in the last hours: docs/reports.md, Engines. */
import Type from "typebox";
import { grouped } from "../../core/inference/money.ts";
import { instant as instantWritten } from "../../core/time/written.ts";
import { Report, type UpstreamMeasures } from "../store/upstream-report.ts";
import { type Column, flag, type Said, tablePiece } from "./command.ts";
import { fail } from "./error.ts";
import { examples, moment, readers, words } from "./shapes.ts";
import { verbsOf } from "./verb.ts";

const verb = verbsOf("Upstreams");

const example: UpstreamMeasures = {
  requests: 1200,
  failed: 3,
  cancelled: 10,
  firstPartP50_ms: 310,
  firstPartP95_ms: 1240,
  durationP50_ms: 4100,
  durationP95_ms: 21_000,
};

const hour_ms = 3_600_000;
const hours_max = 48;
const hours_usual = 24;

export const upstreamReportVerbs = [
  verb({
    name: "reportUpstreams",
    route: "GET /upstreams/report",
    summary: "Report how engines answered",
    description: `Requests, failures and times of each engine and each hour, from the records of the requests. A report spans at most ${hours_max} hours, because it reads each of them. An \`organization-admin\` gets the requests of their own organization.`,
    roles: readers,
    faults: ["resource_not_found"],
    takes: Type.Object({
      from: Type.Optional(moment(`The first moment; else ${hours_usual} hours before \`to\`.`)),
      to: Type.Optional(moment("The moment after the last; else now.")),
      upstream: Type.Optional(words("Only requests that this upstream was asked for last, and its attempts.")),
      model: Type.Optional(words("Only requests for this model.")),
      organization: Type.Optional(words("Only requests of this organization (slug or ID).")),
    }),
    answers: Report,
    example: {
      takes: {},
      answer: {
        from: examples.at,
        to: examples.at,
        asOf: examples.at,
        total: example,
        hours: [{ hour: examples.at, ...example }],
        upstreams: [{ upstream: "gpu-1", ...example }],
        failures: [{ upstream: "gpu-1", code: "upstream_timeout", requests: 3 }],
        followed: [{ upstream: "gpu-2", outcome: "unreachable", attempts: 7 }],
      },
    },
    command: {
      words: "upstream report",
      description: "report how engines answered in the last hours",
      takes: {
        from: flag("--from <instant>", `first moment (default: ${hours_usual} hours before --to)`),
        to: flag("--to <instant>", "moment after the last (default: now)"),
        upstream: flag("--upstream <name>", "only requests that this upstream was asked for last"),
        model: flag("--model <model>", "only requests for this model"),
        organization: flag("--org <org>", "only requests of this organization (slug or ID)"),
      },
      says: said,
      help: `
A report spans at most ${hours_max} hours. Times are in milliseconds, from the admission.

Examples:
  $ sluice upstream report
  $ sluice upstream report --upstream gpu-1 --from 2026-11-24T08:00Z --to 2026-11-24T20:00Z`,
    },
    async act({ ledger, narrowedTo, upstreamReports }, { upstream, model, organization, ...span }) {
      const { to = await ledger.now() } = span;
      const { from = new Date(to.getTime() - hours_usual * hour_ms) } = span;
      if (from >= to) fail("'from' must be before 'to'.");
      if (to.getTime() - from.getTime() > hours_max * hour_ms)
        fail(`A report of engines spans at most ${hours_max} hours. Choose a shorter span.`);
      const organizationId = await narrowedTo(organization);
      const query = { from, to, upstream, model, organizationId };
      const { at, hours, ...rest } = await upstreamReports.reportUpstreams(query);
      return {
        from,
        to,
        asOf: at,
        hours: hours.map(({ startsAt, ...measures }) => ({ hour: startsAt, ...measures })),
        ...rest,
      };
    },
  }),
] as const;

const ms = (value: number | null) => (value === null ? "-" : grouped(value));

const columns: Column<UpstreamMeasures & { name: string }>[] = [
  { head: "UPSTREAM", cell: ({ name }) => name },
  { head: "REQUESTS", cell: ({ requests }) => grouped(requests) },
  { head: "FAILED", cell: ({ failed }) => grouped(failed) },
  { head: "FIRST PART, P50 MS", cell: ({ firstPartP50_ms }) => ms(firstPartP50_ms) },
  { head: "P95 MS", cell: ({ firstPartP95_ms }) => ms(firstPartP95_ms) },
  { head: "END, P50 MS", cell: ({ durationP50_ms }) => ms(durationP50_ms), optional: true },
  { head: "P95 MS", cell: ({ durationP95_ms }) => ms(durationP95_ms), optional: true },
];

interface Trouble {
  upstream: string | null;
  what: string;
  times: number;
}
const troubleColumns: Column<Trouble>[] = [
  { head: "UPSTREAM", cell: ({ upstream }) => upstream ?? "none" },
  { head: "TROUBLE", cell: ({ what }) => what },
  { head: "TIMES", cell: ({ times }) => grouped(times) },
];

function said({ from, to, total, upstreams, failures, followed }: Report): Said {
  const head = `From ${instantWritten(from)} until before ${instantWritten(to)}.\n`;
  if (total.requests === 0) return `${head}No request has ended.\n`;
  const rows = upstreams.map((one) => ({ name: one.upstream ?? "none", ...one }));
  const trouble: Trouble[] = [
    ...failures.map(({ upstream, code, requests }) => ({
      upstream,
      what: `failed: ${code ?? "unknown"}`,
      times: requests,
    })),
    ...followed.map(({ upstream, outcome, attempts }) => ({
      upstream,
      what: `another attempt followed: ${outcome}`,
      times: attempts,
    })),
  ];
  return {
    pieces: [
      head,
      tablePiece(columns, [...rows, { name: "all", ...total }]),
      ...(trouble.length > 0 ? [tablePiece(troubleColumns, trouble)] : []),
    ],
  };
}

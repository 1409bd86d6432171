/** Reports of how engines answered in a span of time, computed from the records of requests. */
import Type from "typebox";
import { instant } from "../../core/operations/fields.ts";
import { count, nullable } from "../../core/protocol/shapes/contract.ts";
import type { Value } from "../../core/schema/codec.ts";

export interface UpstreamQuery {
  /** The report covers the requests that were admitted at `from` or later, and before `to`. */
  from: Date;
  to: Date;
  /** Only requests for which this upstream was asked last; absent: requests of all upstreams. */
  upstream?: string | undefined;
  model?: string | undefined;
  organizationId?: string | undefined;
}

const time = (description: string) => nullable(Type.Integer({ minimum: 0, description }));
const upstream = () => nullable(Type.String({ description: "Its name. Null: no engine was asked." }));

/**
 * Measures of requests that have ended. The times are percentiles: within this time, half of the requests (P50) or 95 %
 * of them (P95) had the first part of their answer, or had ended.
 */
const measures = {
  requests: Type.Integer({ minimum: 0, description: "Requests that have ended." }),
  failed: Type.Integer({ minimum: 0, description: "Those of them that failed." }),
  cancelled: Type.Integer({ minimum: 0, description: "Those of them whose client disconnected." }),
  first_part_p50_ms: time("Half of the answers began within this time. Null: none began."),
  first_part_p95_ms: time("95 % of the answers began within this time. Null: none began."),
  duration_p50_ms: time("Half of the requests ended within this time. Null: there was none."),
  duration_p95_ms: time("95 % of the requests ended within this time. Null: there was none."),
};

const Measures = Type.Object(measures, { $id: "UpstreamMeasures" });

/** The report as the verb returns it. */
export const Report = Type.Object(
  {
    from: instant("The first moment."),
    to: instant("The moment after the last."),
    as_of: instant("The instant of which it tells."),
    total: Measures,
    hours: Type.Array(Type.Object({ hour: instant("The beginning of the hour."), ...measures }), {
      description: "The hours (UTC) in which a request was admitted.",
    }),
    upstreams: Type.Array(Type.Object({ upstream: upstream(), ...measures }), {
      description: "By the upstream that a request was asked of last.",
    }),
    failures: Type.Array(
      Type.Object({
        upstream: upstream(),
        code: nullable(Type.String({ description: "The code of the error that the client got." })),
        requests: count(),
      }),
      { description: "The requests that failed, the most frequent first." },
    ),
    followed: Type.Array(
      Type.Object({
        upstream: Type.String(),
        outcome: Type.String({ description: "As in the metric `upstream_attempts_total`." }),
        attempts: count(),
      }),
      { description: "Attempts that another attempt of the same request followed, the most frequent first." },
    ),
  },
  { $id: "UpstreamReport" },
);
export type Report = Value<typeof Report>;
export type UpstreamMeasures = Report["total"];

/** The report as the store computes it. `upstreams` is in the order of names. */
export interface UpstreamReport extends Pick<Report, "total" | "upstreams" | "failures" | "followed"> {
  /** The instant of the report, by the store's clock. */
  at: Date;
  /** The measures of each hour in which there were requests, the earliest hour first. */
  hours: (UpstreamMeasures & { startsAt: Date })[];
}

export interface UpstreamReports {
  reportUpstreams(query: UpstreamQuery): Promise<UpstreamReport>;
}

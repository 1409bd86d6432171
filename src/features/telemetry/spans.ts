/**
 * The spans of one request: the request, its admission, each attempt at an engine, the stream, the settlement. They
 * contain no text of the request or its answer.
 */

import {
  type Attributes,
  type Context,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Operation } from "../../core/store/ledger.ts";
import type { AttemptKind, EngineReport } from "../../core/upstream/attempt.ts";
import type { Ended } from "../../core/usage/record.ts";
import type { AttemptTrace, RunTrace } from "../../core/usage/trace.ts";
import type { RequestTrace, TracedRequest } from "../../core/usage/traces.ts";
import {
  modelAttributes,
  operationName,
  providers,
  reportAttributes,
  runAttributes,
  serverAttributes,
} from "./gen-ai.ts";

export class Spans implements RequestTrace {
  readonly #tracer: Tracer;
  readonly #request: Span;
  readonly #inside: Context;
  readonly #route: string;
  readonly #hasCallerIds: boolean;
  /** The caller's ids, for spans that begin from now on. */
  #callerIds: Attributes = {};
  #stream: Span | null = null;

  #operation: Operation = "chat.completions";

  constructor(tracer: Tracer, { id, method, route, words }: TracedRequest, parent: Context, hasCallerIds: boolean) {
    this.#tracer = tracer;
    this.#hasCallerIds = hasCallerIds;
    this.#route = `${method} ${route}`;
    this.#request = tracer.startSpan(
      this.#route,
      {
        kind: SpanKind.SERVER,
        attributes: {
          "http.request.method": method,
          "http.route": route,
          "sluice.request.id": id,
          ...headersOf(words),
        },
      },
      parent,
    );
    this.#inside = trace.setSpan(parent, this.#request);
  }

  get sampledId(): string | undefined {
    const { traceId, traceFlags } = this.#request.spanContext();
    return traceFlags & TraceFlags.SAMPLED ? traceId : undefined;
  }

  identified({ organization, key }: { organization: string; key: string }): void {
    this.#addCallerIds({ "sluice.organization.id": organization, "sluice.key.id": key });
  }

  counted(teamId: string): void {
    this.#addCallerIds({ "sluice.team.id": teamId });
  }

  admission(operation: Operation): (code: string | null) => void {
    this.#operation = operation;
    const span = this.#begin("admission");
    return (code) => {
      if (code !== null) failed(span, code);
      span.end();
    };
  }

  attempt({ name, url, address, protocol }: Parameters<RunTrace["attempt"]>[0], engineModel: string): AttemptTrace {
    const span = this.#begin(`${operationName(this.#operation)} ${engineModel}`, SpanKind.CLIENT, {
      ...modelAttributes(engineModel, this.#operation),
      "gen_ai.provider.name": providers[protocol],
      ...serverAttributes(url),
      "sluice.upstream": name,
      ...(address ? { "sluice.replica": address } : {}),
    });
    return {
      headers: traceHeaders(span),
      ended: (outcome: AttemptKind, status: number | undefined, report: EngineReport) => {
        // The caller's ids are set at the span's end: the span may begin before the ledger has admitted the request,
        // and the request's team is known only after that.
        span.setAttributes({ ...reportAttributes(report), ...this.#callerIds });
        span.setAttribute("sluice.attempt.outcome", outcome);
        if (status !== undefined) span.setAttribute("http.response.status_code", status);
        if (outcome !== "answered" && outcome !== "abandoned") failed(span, outcome);
        span.end();
      },
    };
  }

  firstPart(): void {
    // The answer may have begun again, with a new span.
    this.#stream?.end();
    this.#request.addEvent("first part");
    this.#stream = this.#begin("stream");
  }

  settlement(): () => void {
    const span = this.#begin("settlement");
    return () => span.end();
  }

  answered(ended: Ended): void {
    this.#request.setAttributes(runAttributes(ended));
    this.#request.updateName(`${operationName(ended.operation)} ${ended.model}`);
    if (ended.errorCode !== null && this.#stream) failed(this.#stream, ended.errorCode);
    this.#stream?.end();
  }

  end(status: number, code: string | undefined): void {
    this.#request.setAttribute("http.response.status_code", status);
    if (code !== undefined) this.#request.setAttribute("error.type", code);
    // A mistake of the client (4xx) is not an error of the server's span.
    if (status >= 500) this.#request.setStatus({ code: SpanStatusCode.ERROR });
    this.#request.end();
  }

  #addCallerIds(ids: Attributes): void {
    if (!this.#hasCallerIds) return;
    this.#request.setAttributes(ids);
    this.#callerIds = { ...this.#callerIds, ...ids };
  }

  #begin(name: string, kind: SpanKind = SpanKind.INTERNAL, attributes: Attributes = {}): Span {
    return this.#tracer.startSpan(name, { kind, attributes: { ...attributes, ...this.#callerIds } }, this.#inside);
  }
}

function failed(span: Span, type: string): void {
  span.setAttribute("error.type", type);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/** The texts by which the client describes itself, under the names of their headers. */
function headersOf({ user_agent, x_request_id, x_client_request_id }: TracedRequest["words"]) {
  return {
    ...(user_agent ? { "user_agent.original": user_agent } : {}),
    ...(x_request_id ? { "http.request.header.x-request-id": [x_request_id] } : {}),
    ...(x_client_request_id ? { "http.request.header.x-client-request-id": [x_client_request_id] } : {}),
  };
}

function traceHeaders(span: Span): Record<string, string> {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  const flags = (traceFlags & TraceFlags.SAMPLED).toString(16).padStart(2, "0");
  const state = traceState?.serialize();
  return { traceparent: `00-${traceId}-${spanId}-${flags}`, ...(state ? { tracestate: state } : {}) };
}

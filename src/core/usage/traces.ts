/** The interface of traces for the traced modules, which know nothing of OpenTelemetry. */
import type { Ended } from "./record.ts";
import type { RunTrace } from "./trace.ts";

export interface Traces {
  begin(request: TracedRequest): RequestTrace;
  /** Records a run that has ended, traced or not, in the exporter's metrics. */
  inference(ended: Ended): void;
  /** Sends what is still waiting to be exported, for a few seconds at most. */
  stop(): Promise<void>;
}

export interface TracedRequest {
  id: string;
  method: string;
  /** The pattern of the path that the router matched. */
  route: string;
  headers: { get(name: string): string | null };
  /** The headers by which the client describes itself, shortened and cleaned. */
  words: Record<string, string | undefined>;
}

export interface RequestTrace extends RunTrace {
  identified(caller: { organization: string; key: string }): void;
  answered(ended: Ended): void;
  /** Called when the last byte of the answer was written. `code`: the code of the request's fault. */
  end(status: number, code: string | undefined): void;
}

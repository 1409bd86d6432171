import type { UpstreamProtocol } from "./codecs.ts";

/** Where an engine is and how it is spoken to, as the catalog names it. Nothing of this ever reaches a client. */
export interface Upstream {
  /** The operator's name for it. */
  name: string;
  /** Base URL, up to and with `/v1`, no trailing slash. */
  url: string;
  protocol: UpstreamProtocol;
  apiKey: string | null;
  timeouts: UpstreamTimeouts;
}

export interface UpstreamTimeouts {
  /** Until the status line. */
  connect_ms: number;
  /** Until the first part of an answer. */
  first_part_ms: number;
  /** Between two parts of an answer. */
  idle_ms: number;
  /** The whole answer. */
  total_ms: number;
}

export const defaultTimeouts: UpstreamTimeouts = {
  connect_ms: 600_000,
  first_part_ms: 600_000,
  idle_ms: 120_000,
  total_ms: 3_600_000,
};

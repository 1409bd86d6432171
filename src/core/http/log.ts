/** The log of a process. src/features/telemetry/log.ts writes it. */
import type { Call } from "./call.ts";

export interface Log {
  request(call: Call, status: number): void;
  event(level: "info" | "warn" | "error", message: string, fields?: Record<string, unknown>): void;
  /** Writes what is still buffered. */
  flush(): void;
}

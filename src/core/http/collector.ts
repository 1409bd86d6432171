/** The runtime's garbage collector, as far as the node uses it. Rule: docs/design/runtime.md, Memory. */
import { fullGC } from "bun:jsc";

export interface Collector {
  /** A full collection, which frees objects of any age. It takes some milliseconds. */
  collect(): void;
  /** A collection of new objects only, mostly in parallel: one or two milliseconds. */
  collectNew(): void;
}

export const runtimeCollector: Collector = {
  collect: fullGC,
  collectNew: () => void Bun.gc(false),
};

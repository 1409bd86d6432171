/** The collector of the runtime, as far as the node asks it for anything. Rule: docs/design/service.md, Memory in flight. */
import { fullGC } from "bun:jsc";

export interface Collector {
  /** Frees what nobody holds, however long it was held: some milliseconds. */
  collect(): void;
  /** Asks for a look at what is new alone, mostly beside the work: a millisecond or two. */
  collectNew(): void;
}

export const runtimeCollector: Collector = {
  collect: fullGC,
  collectNew: () => void Bun.gc(false),
};

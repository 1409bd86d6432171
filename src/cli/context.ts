/** What every command gets. */
import type { Services } from "./services.ts";

export interface CommandContext {
  services: Services;
  /** For commands whose exit code is not 0 although nothing failed. */
  exitWith: (code: number) => void;
}

/** What each command is given to build itself with. */
import type { Services } from "./services.ts";

export interface Building {
  services: Services;
  /** For commands that end without a failure, and whose answer is still not "done". */
  exitWith: (code: number) => void;
}

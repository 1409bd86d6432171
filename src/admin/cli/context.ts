/** The context that every command gets. */
import type { Services } from "./services.ts";

export interface CommandContext {
  services: Services;
  /** Sets the exit code, for a command that succeeds and yet ends with a code other than 0. */
  exitWith: (code: number) => void;
}

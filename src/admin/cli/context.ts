/** The context of every command. */
import type { Services } from "./services.ts";

export interface CommandContext {
  services: Services;
  /** Sets the exit code, for commands that end with a code other than 0 although nothing failed. */
  exitWith: (code: number) => void;
}

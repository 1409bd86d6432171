/** The context of every command. */
import type { Services } from "./services.ts";

export interface CommandContext {
  services: Services;
  /** Sets the exit code, for commands that end with another one than 0 although nothing failed. */
  exitWith: (code: number) => void;
}

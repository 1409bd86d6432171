/** Checks of what is typed at prompts, which accept exactly what a verb of management accepts. */
import { ManagementError } from "../management/error.ts";

/** Turns a parser into the check of a prompt, which returns what is wrong, or null. */
export function validator(parse: (answer: string) => unknown): (answer: string) => string | null {
  return (answer) => {
    try {
      parse(answer);
      return null;
    } catch (thrown) {
      if (thrown instanceof ManagementError) return thrown.message;
      throw thrown;
    }
  };
}

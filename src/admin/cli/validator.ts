/** Checks of answers at prompts. They accept exactly the values that a verb of management accepts. */
import { ManagementError } from "../management/error.ts";

/** Turns a parser into a check for a prompt. The check returns the error message, or null. */
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

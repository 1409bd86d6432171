/** What a question to a person accepts is what the domain accepts. */
import { Refusal } from "../auth/refusal.ts";

/** A check of the domain as a question's: what is wrong, or null. */
export function refusalOf(check: (answer: string) => unknown): (answer: string) => string | null {
  return (answer) => {
    try {
      check(answer);
      return null;
    } catch (thrown) {
      if (thrown instanceof Refusal) return thrown.message;
      throw thrown;
    }
  };
}

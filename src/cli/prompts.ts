/** Questions to a person, where a required value is missing. Loaded only when one is asked. */
import { confirm, isCancel, select, text } from "@clack/prompts";
import { Refusal } from "../auth/refusal.ts";

export interface Prompts {
  text(question: { message: string; check: (answer: string) => string | null }): Promise<string>;
  choice(question: { message: string; options: { value: string; label: string }[] }): Promise<string>;
  /** No is the answer that Enter gives. */
  sure(message: string): Promise<boolean>;
}

export function clackPrompts(): Prompts {
  return {
    text: async ({ message, check }) =>
      answered(await text({ message, validate: (answer) => check(answer ?? "") ?? undefined })),
    choice: async ({ message, options }) => answered(await select({ message, options })),
    sure: async (message) => answered(await confirm({ message, initialValue: false })),
  };
}

function answered<T>(answer: T | symbol): Exclude<T, symbol> {
  if (isCancel(answer)) throw new Refusal("Cancelled; nothing was done.");
  return answer as Exclude<T, symbol>;
}

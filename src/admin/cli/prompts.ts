/** Prompts for required values that are missing. This module is loaded only when a prompt is needed. */
import { confirm, isCancel, select, text } from "@clack/prompts";

export interface Prompts {
  text(question: { message: string; check: (answer: string) => string | null }): Promise<string>;
  select(question: { message: string; options: { value: string; label: string }[] }): Promise<string>;
  /** Asks a question with yes or no. The default, if the user just presses Enter, is no. */
  confirm(message: string): Promise<boolean>;
}

export function clackPrompts(): Prompts {
  return {
    text: async ({ message, check }) =>
      answered(await text({ message, validate: (answer) => check(answer ?? "") ?? undefined })),
    select: async ({ message, options }) => answered(await select({ message, options })),
    confirm: async (message) => answered(await confirm({ message, initialValue: false })),
  };
}

function answered<T>(answer: T | symbol): Exclude<T, symbol> {
  if (isCancel(answer)) throw new Error("Canceled. Nothing was changed.");
  return answer as Exclude<T, symbol>;
}

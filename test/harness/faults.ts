/** A refusal, taken as what was thrown. */
import { Fault } from "../../src/core/inference/fault.ts";

/** What it was refused with, or null where it was taken. Whatever else is thrown fails the test. */
export function faultOf(act: () => unknown): Fault | null {
  try {
    act();
    return null;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}

/** The same of work that ends later. */
export async function laterFaultOf(work: Promise<unknown>): Promise<Fault | null> {
  try {
    await work;
    return null;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}

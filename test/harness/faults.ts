/** Catches the refusals that code throws. */
import { Fault } from "../../src/core/inference/fault.ts";

/** The refusal that `act` threw, or null if it threw none. Whatever else is thrown fails the test. */
export function faultOf(act: () => unknown): Fault | null {
  try {
    act();
    return null;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}

/** The refusal with which asynchronous work fails, or null if it succeeds. */
export async function laterFaultOf(work: Promise<unknown>): Promise<Fault | null> {
  try {
    await work;
    return null;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}

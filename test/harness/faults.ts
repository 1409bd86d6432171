/** Catches the errors of type Fault that code throws. */
import { Fault } from "../../src/core/inference/fault.ts";

/** The Fault that `act` threw, or null if it threw nothing. Any other error fails the test. */
export function faultOf(act: () => unknown): Fault | null {
  try {
    act();
    return null;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}

/** The Fault with which a promise rejects, or null if it resolves. */
export async function laterFaultOf(work: Promise<unknown>): Promise<Fault | null> {
  try {
    await work;
    return null;
  } catch (thrown) {
    if (thrown instanceof Fault) return thrown;
    throw thrown;
  }
}

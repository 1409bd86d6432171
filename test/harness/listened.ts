// A cancellation that counts its listeners, including those of its children, so that tests can check that no listener
// is left at the end.

import { Cancellation, type Listening } from "../../src/core/time/cancellation.ts";

export class Listened extends Cancellation {
  readonly #open = new Set<object>();

  /** The number of listeners that were neither removed nor called. */
  get listeners(): number {
    return this.#open.size;
  }

  override listen(tell: (reason: unknown) => void): Listening {
    const one = {};
    this.#open.add(one);
    const listening = super.listen((reason) => {
      this.#open.delete(one);
      tell(reason);
    });
    return {
      stop: () => {
        this.#open.delete(one);
        listening.stop();
      },
    };
  }
}

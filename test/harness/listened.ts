// A cancellation that says how many listen to it, children too: what has ended must not be among them.

import { Cancellation, type Listening } from "../../src/core/time/cancellation.ts";

export class Listened extends Cancellation {
  readonly #open = new Set<object>();

  /** Who has not stopped yet. */
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

/** The lanes of a WebSocket: the responses of one lane run one after another, and lanes run side by side. */
import { Fault } from "../../../core/inference/fault.ts";

/** A response's position in the queue of a lane, from `join` to its disposal. */
export interface LanePlace extends Disposable {
  /** Resolves when all earlier positions in the queue have been left. */
  readonly turn: Promise<void>;
}

export class Lanes {
  readonly #lanes_max: number;
  /** The key is the lane. The value resolves when the lane's last response so far has ended. */
  readonly #last = new Map<string, Promise<void>>();

  constructor(lanes_max: number) {
    this.#lanes_max = lanes_max;
  }

  /** Joins the queue of the lane. Throws Fault `concurrency_limit_exceeded` if there are too many lanes. */
  join(lane: string): LanePlace {
    const before = this.#last.get(lane);
    if (!before && this.#last.size >= this.#lanes_max) {
      const message = `This connection already runs ${this.#lanes_max} responses side by side. Wait until one of them has ended.`;
      throw new Fault("concurrency_limit_exceeded", message, { param: "stream_id", retryAfterSeconds: 1 });
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last.set(lane, promise);
    return {
      turn: before ?? Promise.resolve(),
      [Symbol.dispose]: () => {
        if (this.#last.get(lane) === promise) this.#last.delete(lane);
        resolve();
      },
    };
  }
}

/** An answer to one request, for which several requests may be sent to engines, one after another. */
import type { InferenceEvent } from "../../core/inference/event.ts";
import type { AttemptRequest, EngineAnswer, EngineEvents, EngineProgress } from "../../core/usage/record.ts";

export type Batch = InferenceEvent[];
export type Next = IteratorResult<Batch, void>;

/** Sends the request to the model's engines. `progress` continues the count of attempts of an earlier request. */
export type Open = (attemptRequest: AttemptRequest, progress?: EngineProgress) => EngineAnswer;

export abstract class AskingAgain implements EngineAnswer, EngineEvents {
  /** The events of the answer to the latest request. */
  protected latest: EngineEvents;
  /** Whether the reader of the answer has left. */
  protected isOver = false;

  constructor(
    protected readonly open: Open,
    protected readonly attemptRequest: AttemptRequest,
    readonly progress: EngineProgress,
  ) {
    this.latest = open(attemptRequest, progress).events;
  }

  abstract next(): Promise<Next>;

  get events(): EngineEvents {
    return this;
  }

  [Symbol.asyncIterator](): EngineEvents {
    return this;
  }

  return(): Promise<Next> {
    this.isOver = true;
    return this.latest.return();
  }
}

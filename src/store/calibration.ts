/**
 * Estimates that are learned from the reports of engines: how many tokens an input of a model has, and an output of a
 * route. They survive a restart, and nodes share them. No charge rests on them alone.
 */

export interface InputRatio {
  /** Tokens a byte of the body's text: of all late inputs together, so that what is charged by it is right in sum. */
  ratio: number;
  /** Mean distance of single inputs from the ratio. */
  spread: number;
  /** The bytes of those inputs, older ones weighted less: the weight of the ratio. */
  bytes: number;
  /** Tokens that are there without any text: the chat template, and what an engine adds by itself. */
  template: number;
}

/** Sums over complete answers; older ones have faded, so none need be whole. */
export interface OutputSums {
  /** Tokens of answers that were streamed part by part. */
  tokens: number;
  deltas: number;
  codeUnits: number;
  /** Tokens of answers of which a part came whole, so that its deltas cannot be counted. */
  wholeTokens: number;
  wholeCodeUnits: number;
}

export interface Calibrations {
  /** Keyed by public model ID. */
  inputs: Shelf<InputRatio>;
  /** Keyed by route: an upstream and its model. */
  outputs: Shelf<OutputSums>;
}

export interface Shelf<Known> {
  /** The last written, so many at most; the oldest of them first. Whoever reads judges what is plausible. */
  read(names_max: number): Promise<[name: string, known: Known][]>;
  /**
   * All or none. The last writer wins: nodes that serve the same engine learn much the same, and a node writes only what it
   * has observed since it last wrote.
   */
  write(learned: ReadonlyMap<string, Known>): Promise<void>;
}

/**
 * What was learned from what engines report: how many tokens an input of a model is, and an output of a route. It is kept
 * over a restart and shared by nodes; nothing that is charged rests on it alone.
 */

export interface InputRatio {
  /** Tokens a byte of the body's text: of all late inputs together, so that what is charged by it is right in sum. */
  ratio: number;
  /** Mean distance of single inputs from the ratio. */
  spread: number;
  /** Of those inputs, the older the less: how much the ratio rests on. */
  bytes: number;
  /** Tokens that are there without any text: the chat template, and what an engine adds by itself. */
  template: number;
}

/** Sums over complete answers; older ones have faded, so none need be whole. */
export interface OutputSums {
  /** Of answers that were streamed, part for part. */
  tokens: number;
  deltas: number;
  codeUnits: number;
  /** Of answers of which a part came whole: its deltas say nothing. */
  wholeTokens: number;
  wholeCodeUnits: number;
}

export interface Calibrations {
  /** By public model id. */
  inputs: Shelf<InputRatio>;
  /** By route: an upstream and its model. */
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

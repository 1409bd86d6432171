/**
 * What was learned of models from what their engines report: how many tokens an input and an output are. It is kept over a
 * restart and shared by nodes; nothing that is charged rests on it alone.
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

/** Sums over complete answers; older ones have faded, so none need be whole. A letter is a UTF-16 unit. */
export interface OutputSums {
  /** Of answers that were streamed, part for part. */
  tokens: number;
  deltas: number;
  codeUnits: number;
  /** Of answers of which a part came whole: its deltas say nothing. */
  wholeTokens: number;
  wholeCodeUnits: number;
}

export interface ModelCalibration {
  /** Public model id. */
  model: string;
  /** Null: nothing is known of it, or nothing new is to be written. */
  input: InputRatio | null;
  output: OutputSums | null;
}

export interface Calibrations {
  /** The last written, so many at most; the oldest of them first. Whoever reads judges what is plausible. */
  read(models_max: number): Promise<ModelCalibration[]>;
  /**
   * All or none. The last writer wins, for input and output each by itself: nodes that serve the same engine learn much
   * the same, and a node writes only what it has observed since it last wrote.
   */
  write(models: readonly ModelCalibration[]): Promise<void>;
}

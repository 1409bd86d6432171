/**
 * What was learned of models from what their engines report: how many tokens an input and an output are. It is kept over a
 * restart and shared by nodes; nothing that is charged rests on it alone.
 */

export interface InputRatio {
  /** Tokens a byte of the body. */
  ratio: number;
  /** Mean distance of single inputs from the ratio. */
  spread: number;
}

/** Sums over whole streams; older ones have faded, so none need be whole. */
export interface OutputSums {
  tokens: number;
  deltas: number;
  /** UTF-16 units. */
  codeUnits: number;
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

/**
 * Estimates that are learned from the reports of engines: how many tokens the input of a model has, and how many the
 * output of a route. The estimates survive a restart, and nodes share them. No charge depends on them alone.
 */

export interface InputRatio {
  /**
   * Tokens per byte of the body's text, over all recent inputs together, so that charges by this ratio are right in
   * total.
   */
  ratio: number;
  /** The mean difference between the ratio of a single input and `ratio`. */
  spread: number;
  /**
   * The bytes of the inputs from which the ratio was learned, older ones weighted less. This number is the weight of
   * the ratio against new inputs.
   */
  bytes: number;
  /** The number of tokens of a request without any text: those of the chat template, and those that an engine adds. */
  template: number;
}

/** Sums over complete answers. Older answers count less, so the sums need not be whole numbers. */
export interface OutputSums {
  /** The number of tokens in those answers of a route that were streamed part by part. */
  tokens: number;
  deltas: number;
  codeUnits: number;
  /** The number of tokens of text, streamed or not. Each script (writing system) on a route has an entry of its own. */
  textTokens: number;
  textCodeUnits: number;
}

export interface Calibrations {
  /** Estimates for inputs. The key is a public model ID. */
  inputs: CalibrationTable<InputRatio>;
  /** Estimates for outputs. The key is a route: an upstream and its model. */
  outputs: CalibrationTable<OutputSums>;
}

export interface CalibrationTable<Entry> {
  /** Reads the latest entries, at most this many, the oldest first. The reader decides which are plausible. */
  read(names_max: number): Promise<[name: string, entry: Entry][]>;
  /**
   * Writes all entries or none. The last writer wins: nodes that serve the same engine learn much the same, and a node
   * writes only what it has observed since it last wrote.
   */
  write(learned: ReadonlyMap<string, Entry>): Promise<void>;
}

/** Measures of a database's health. */
export interface DatabaseSigns {
  /** The number of transactions since the oldest running one started: rows that died since then cannot be removed. */
  oldestSnapshot_transactions: number;
  deadRows: number;
  /**
   * The number of transactions since all rows were last frozen. At two thousand million, Postgres accepts no more
   * writes.
   */
  unfrozen_transactions: number;
}

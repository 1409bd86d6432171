/** The state of a database, apart from its contents. */
export interface DatabaseSigns {
  /**
   * The number of transactions since the start of the oldest one that still runs or reads: rows that died since cannot
   * be removed.
   */
  oldestSnapshot_transactions: number;
  deadRows: number;
  /**
   * The number of transactions since all rows were last frozen. At two thousand million, the server accepts no writes.
   */
  unfrozen_transactions: number;
}

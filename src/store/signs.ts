/** How a database is, beside what is in it. */
export interface DatabaseSigns {
  /** How many transactions have begun since the oldest one that still runs or reads: what died since stays. */
  oldestSnapshot_transactions: number;
  deadRows: number;
  /** How many have begun since all rows were last frozen; at two thousand million the server takes no writes. */
  unfrozen_transactions: number;
}

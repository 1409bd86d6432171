/** What happened, for those who want to know what histories try. */
export const noCounts = {
  granted: 0,
  "reports that were not believed": 0,
  "granted on extra usage": 0,
  "engines asked before the grant": 0,
  grown: 0,
  "cut short at a window's end": 0,
  refused: 0,
  "settled by their node": 0,
  "ended after a window of theirs": 0,
  recovered: 0,
  "given up for lost by their node": 0,
  "transactions undone by a crash": 0,
  "confirmed transactions lost in a failover": 0,
  "plans changed while requests ran": 0,
  "limits of keys and teams changed while requests ran": 0,
  "keys that changed their team while requests ran": 0,
  "windows adjusted": 0,
  "ended by a revocation": 0,
  "sweeps that met a clock that was set": 0,
};
export type Counts = typeof noCounts;

// The rules that must hold in every history (simulated run), as reports of violations word them:
// docs/design/metering.md, What must hold.

export const rules = {
  limit: "no window is past its limit, and no more requests run at a time than the plan says",
  sums: "used is the sum of the records, held the sum of the holds",
  record: "each admitted request has one record in the end, never changed, never lost",
  holds: "a hold is no more than was asked for, and in the end there is none",
  durable: "what was acknowledged is not forgotten",
  grant: "nothing is forwarded before its grant is durable, nor beyond what is held",
  lease: "nothing is forwarded past the lease, or after another has settled the hold",
  charge: "a request that settles itself is charged exactly what was forwarded",
  checkpoint: "a recovered request is charged at its last checkpoint, at most one checkpoint less than was forwarded",
  late: "a recovered request whose node comes back is charged what was forwarded, by its record and one entry",
  key: "an idempotency key is charged once at most",
  repeat: "what repeats an answer is that answer from its first byte, and whole where that is",
  detached: "an answer that is kept goes on without its client",
  delivered: "what nobody streams costs nothing where it broke, its lease was lost or its node is gone",
  departure: "whom its client has left ends within a second; an answer that is asked for whole within ten",
  abandoned: "a request is recovered only where its node is gone, or was cut off",
  refusal: "the store alone refuses, and rightly; who is refused is charged nothing",
  windows: "a request is admitted to the windows that the store's clock says",
  plans: "who runs goes by the plan in force, and nothing leaves past a limit of anyone that was lowered",
  passed: "what is passed on holds its searches, and all of an answer that comes whole, before its engine is asked",
  standing: "what runs by a key that is revoked ends within a second",
  rates: "no more requests a minute than the plan says, and none refused below that",
  available: "whom nothing stands in the way of is served, and ends",
} as const;
export type Rule = keyof typeof rules;

export interface Violation {
  rule: Rule;
  sentence: string;
}

export type Say = (rule: Rule, sentence: string) => void;

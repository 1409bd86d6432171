// A reference model of the database's rows for kept answers (stored for repeats; src/stores/postgres/kept.ts), as plain
// as possible: the claim of a key belongs to one answer.

import type { Kept, KeptEnd, NewKept } from "../../src/features/responses/store/kept.ts";

interface Row extends NewKept {
  state: Kept["state"];
  responseId: string | null;
  response: string | null;
  createdAt_ms: number;
}

export class KeptModel {
  readonly #rows = new Map<string, Row>();

  constructor(readonly now_ms: () => number) {}

  begin(kept: NewKept): "begun" | Kept {
    const held = [...this.#rows.values()].find(({ claim }) => claim !== null && claim.key === kept.claim?.key);
    if (held) return this.#told(held);
    const row = { ...kept, state: "open", responseId: null, response: null, createdAt_ms: this.now_ms() } as const;
    this.#rows.set(kept.requestId, row);
    return "begun";
  }

  createdAt_ms(requestId: string): number | null {
    return this.#rows.get(requestId)?.createdAt_ms ?? null;
  }

  find(requestId: string): Kept | null {
    const row = this.#rows.get(requestId);
    return row ? this.#told(row) : null;
  }

  respond(requestId: string, responseId: string, response: string): boolean {
    const row = this.#rows.get(requestId);
    if (row?.state !== "open") return false;
    Object.assign(row, { responseId, response });
    return true;
  }

  end(requestId: string, { state, response, responseId, freesClaim = false }: KeptEnd): boolean {
    const row = this.#rows.get(requestId);
    if (row?.state !== "open") return false;
    row.state = state;
    row.response = response ?? row.response;
    row.responseId ??= responseId ?? null;
    if (freesClaim) row.claim = null;
    return true;
  }

  free(requestId: string): boolean {
    return this.#rows.delete(requestId);
  }

  abandon(requestId: string): boolean {
    const row = this.#rows.get(requestId);
    if (row?.state === "open" && row.response !== null) return row.claim === null;
    if (row) Object.assign(row, { state: "ended", claim: null });
    return true;
  }

  isClaimed(requestId: string): boolean {
    return (this.#rows.get(requestId)?.claim ?? null) !== null;
  }

  #told({ claim, createdAt_ms, ...row }: Row): Kept {
    return { ...row, body: claim?.body ?? null, age_ms: this.now_ms() - createdAt_ms };
  }
}

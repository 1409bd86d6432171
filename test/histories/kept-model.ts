// The rows of answers that are kept, as plainly as they can be said (src/postgres/kept.ts): a claim belongs to one answer.

import type { Kept, KeptEnd, NewKept } from "../../src/store/kept.ts";

interface Row extends NewKept {
  state: Kept["state"];
  createdAt_ms: number;
}

export class KeptModel {
  readonly #rows = new Map<string, Row>();

  constructor(readonly now_ms: () => number) {}

  begin(kept: NewKept): "begun" | Kept {
    const held = [...this.#rows.values()].find(({ claim }) => claim !== null && claim.key === kept.claim?.key);
    if (held) return this.#told(held);
    this.#rows.set(kept.requestId, { ...kept, state: "open", createdAt_ms: this.now_ms() });
    return "begun";
  }

  find(requestId: string): Kept | null {
    const row = this.#rows.get(requestId);
    return row ? this.#told(row) : null;
  }

  end(requestId: string, { state, freesClaim = false }: KeptEnd): boolean {
    const row = this.#rows.get(requestId);
    if (row?.state !== "open") return false;
    row.state = state;
    if (freesClaim) row.claim = null;
    return true;
  }

  free(requestId: string): boolean {
    return this.#rows.delete(requestId);
  }

  abandon(requestId: string): boolean {
    this.#rows.delete(requestId);
    return true;
  }

  isClaimed(requestId: string): boolean {
    return (this.#rows.get(requestId)?.claim ?? null) !== null;
  }

  #told({ requestId, organizationId, claim, state, createdAt_ms }: Row): Kept {
    const age_ms = this.now_ms() - createdAt_ms;
    return { requestId, organizationId, state, body: claim?.body ?? null, responseId: null, response: null, age_ms };
  }
}

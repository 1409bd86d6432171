/** The drained engines as this process knows them: they get no new requests because an operator said so. */
import type { Drain } from "../store/drain.ts";
import type { Upstream } from "../upstream/target.ts";

export type DrainSeen = Pick<Drain, "upstream" | "replica" | "drainedAt" | "until">;

export class Drained {
  #engines = new Set<string>();
  #drains: readonly DrainSeen[] = [];

  get isEmpty(): boolean {
    return this.#engines.size === 0;
  }

  get drains(): readonly DrainSeen[] {
    return this.#drains;
  }

  /** Identifies the set of drained engines: it changes when they do. */
  get identity(): string {
    return [...this.#engines].sort().join("\n\n");
  }

  has({ name, address }: Pick<Upstream, "name" | "address">): boolean {
    if (this.isEmpty) return false;
    return this.#engines.has(identityOf(name, "")) || (address != null && this.#engines.has(identityOf(name, address)));
  }

  /** Replaces the set. Returns whether it changed. */
  set(all: readonly DrainSeen[]): boolean {
    this.#drains = all;
    const engines = new Set(all.map(({ upstream, replica }) => identityOf(upstream, replica ?? "")));
    const isSame = engines.size === this.#engines.size && this.#engines.isSupersetOf(engines);
    this.#engines = engines;
    return !isSame;
  }
}

const identityOf = (upstream: string, replica: string) => `${upstream}\n${replica}`;

// A database in memory: transactions as READ COMMITTED has them. A statement sees what is committed at its time, and what its
// own transaction wrote; locks of rows hold until the end.

import type { CountingLimits } from "../../../../src/admin/store/own-limits.ts";
import { idOf } from "../../../../src/core/store/ids.ts";
import { countingRows } from "./counting.ts";
import { type Holder, Scheduler, type Strength } from "./scheduler.ts";
import { type Reading, type Rows, type TableName, Tables } from "./tables.ts";

/** Called after a transaction, with what was committed before and after it. */
export type Committed = (before: Reading, after: Reading) => void;

/** The rule of one's own limits (nobody raises a limit that counts for themselves), with a part taken out. */
export interface Rule {
  /** The table whose rows the rule does not lock. */
  unlocked?: "person" | "organization";
  /** Changes what the rule reads of the limits that count. */
  reads?(rows: CountingLimits[]): CountingLimits[];
}

export interface MemoryDatabase {
  memory: Memory;
  transaction<T>(work: (tx: MemoryTransaction) => Promise<T>): Promise<T>;
}

export class Memory implements Reading {
  readonly scheduler = new Scheduler();

  constructor(
    readonly now: Date,
    readonly tables = new Tables(),
  ) {}

  /** A copy with the same rows. */
  copied(): Memory {
    return new Memory(this.now, this.tables.copied());
  }

  get<Name extends TableName>(name: Name, id: string): Rows[Name] | undefined {
    return this.tables.table(name).get(id);
  }

  all<Name extends TableName>(name: Name): Rows[Name][] {
    return [...this.tables.table(name).values()];
  }

  database(committed: Committed | null = null, rule: Rule = {}): MemoryDatabase {
    return {
      memory: this,
      transaction: async (work) => {
        const tx = new MemoryTransaction(this, rule);
        this.scheduler.began(tx.locks);
        try {
          await this.scheduler.turn();
          const answer = await work(tx);
          await this.scheduler.turn();
          const before = committed && this.copied();
          tx.commit();
          if (before) committed?.(before, this);
          return answer;
        } finally {
          this.scheduler.ended(tx.locks);
        }
      },
    };
  }
}

export class MemoryTransaction implements Reading {
  readonly locks: Holder = new Map();
  readonly now: Date;
  readonly #memory: Memory;
  /** The rows that the transaction has written; null: deleted. */
  readonly #written = new Map<TableName, Map<string, unknown>>();

  constructor(
    memory: Memory,
    readonly rule: Rule,
  ) {
    this.#memory = memory;
    this.now = memory.now;
  }

  /** Waits for the turn of a statement that takes no lock. */
  statement(): Promise<void> {
    return this.#memory.scheduler.turn();
  }

  /** Takes a lock until the transaction ends. `name`: the ID of a row, or the name of an advisory lock. */
  lock(name: string, strength: Strength = "update"): Promise<void> {
    return this.#memory.scheduler.lock(this.locks, name, strength);
  }

  /** Runs the statements of the rule of one's own limits: the product's own code for that rule works on this memory. */
  async query<Row>(text: string, params: readonly unknown[] = []): Promise<Row[]> {
    const locking = lockings.find((one) => text === one.text);
    if (locking) {
      const ids = [params[0]].flat().sort();
      if (this.rule.unlocked === locking.table) return [];
      for (const id of ids) await this.lock(idOf(String(id), locking.prefix), locking.strength);
      return [];
    }
    if (!text.includes("with own_team as")) throw new Error(`the memory does not know this statement: ${text}`);
    await this.statement();
    const [organization, person] = params.map(String);
    const rows = countingRows(this, idOf(organization!, "org_"), idOf(person!, "per_"));
    return (this.rule.reads?.(rows) ?? rows) as Row[];
  }

  get<Name extends TableName>(name: Name, id: string): Rows[Name] | undefined {
    const written = this.#written.get(name)?.get(id);
    if (written === null) return undefined;
    return (written as Rows[Name] | undefined) ?? this.#memory.get(name, id);
  }

  all<Name extends TableName>(name: Name): Rows[Name][] {
    const written = this.#written.get(name);
    if (!written) return this.#memory.all(name);
    const seen = new Map<string, unknown>(this.#memory.tables.table(name));
    apply(written, seen);
    return [...seen.values()] as Rows[Name][];
  }

  set<Name extends TableName>(name: Name, id: string, row: Rows[Name] | null): void {
    const written = this.#written.get(name);
    if (written) written.set(id, row);
    else this.#written.set(name, new Map([[id, row]]));
  }

  commit(): void {
    for (const [name, written] of this.#written) apply(written, this.#memory.tables.table(name));
  }
}

const lockings = [
  {
    text: "select id from person where id = any ($1::uuid[]) order by id for no key update",
    table: "person",
    prefix: "per_",
    strength: "no key update",
  },
  {
    text: "select id from organization where id = $1 for update",
    table: "organization",
    prefix: "org_",
    strength: "update",
  },
] as const;

function apply(written: ReadonlyMap<string, unknown>, table: Map<string, unknown>): void {
  for (const [id, row] of written) {
    if (row === null) table.delete(id);
    else table.set(id, row);
  }
}

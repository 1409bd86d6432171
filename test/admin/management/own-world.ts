// Creates the organizations, people and keys of a test file, in a database of its own, and runs actions that are rolled
// back.
import { afterAll, beforeAll, expect } from "bun:test";
import type { Management } from "../../../src/admin/management/verbs.ts";
import type { Database } from "../../../src/stores/postgres/database.ts";
import { ledger } from "../../../src/stores/postgres/ledger.ts";
import { admitOf, settleOf } from "../../core/store/ledger-stores.ts";
import { openDatabase } from "../../stores/postgres/databases.ts";
import { rolledBack } from "../../stores/postgres/rolled-back.ts";
import { actingAs, callersIn, inside, newWorld, type World } from "./world.ts";

/**
 * Returns the organizations, people and keys of the calling test file. The object is filled before the first test;
 * `furnish` adds to it.
 */
export function worldForTests(furnish: (world: World) => unknown = () => {}): World {
  const world = {} as World;
  let drop = async () => {};
  beforeAll(async () => {
    const owned = await openDatabase();
    drop = owned.drop;
    await furnish(Object.assign(world, await newWorld(owned.db)));
  });
  afterAll(() => drop());
  return world;
}

export type Who = keyof ReturnType<typeof callersIn>;

const callerNamed = {
  root: "command line",
  operator: "operator organization-admin",
  ada: "admin",
  lea: "organization-admin",
  gus: "organization-admin elsewhere",
  ann: "member",
  bob: "member, a colleague",
} as const satisfies Record<string, Who>;

export type Acting = Record<keyof typeof callerNamed, Management>;

/** The verbs with the rights of each of these callers. */
export function actingIn(world: World, db = world.db): Acting {
  const callers = callersIn(world);
  const acting = Object.entries(callerNamed).map(([name, who]) => [name, actingAs(db, callers[who])]);
  return Object.fromEntries(acting) as Acting;
}

/** Runs `act` on the organizations, people and keys, and rolls all changes back. */
export async function apart(world: World, act: (as: Acting, db: Database) => Promise<unknown>): Promise<void> {
  let isDone = false;
  await rolledBack(world.db.transaction, async (tx) => {
    const db = inside(world.db, tx);
    await act(actingIn(world, db), db);
    isDone = true;
  });
  expect(isDone).toBe(true);
}

/** The code of an error; `done` if there was none. */
export const codeOf = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => "done",
    ({ code }: { code: string }) => code,
  );

/** Records an ended request with Ann's key. Returns the request's ID. */
export async function recordRequest({ db, acme, keys }: World): Promise<string> {
  const book = ledger(db, { recovery: "checkpoint" });
  const asked = { ...admitOf(acme), keyId: keys.key };
  await book.run([asked]);
  await book.run([settleOf(asked, 10)]);
  await book.close();
  return asked.requestId;
}

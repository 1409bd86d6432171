// Values are read from the database exactly as they were written, on both kinds of database.

import { describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { DatabaseError } from "../../../src/stores/postgres/database-error.ts";
import { databaseForTests, kinds, type Open } from "./databases.ts";

// Starting a database takes half a second, and many times that on a busy machine.
setDefaultTimeout(60_000);

for (const { kind, open } of kinds) describe(kind, () => contract(open));

function contract(open: Open): void {
  const db = databaseForTests(open);

  const back = async (type: string, value: unknown): Promise<unknown> => {
    const [row] = await db.query<{ value: unknown }>(`select $1::${type} as value`, [value]);
    return row!.value;
  };
  const returns = (type: string, values: fc.Arbitrary<unknown>) =>
    test(`${type} comes back as it went`, () =>
      fc.assert(
        fc.asyncProperty(values, async (value) => expect(await back(type, value)).toEqual(value)),
        { numRuns: 40 },
      ));

  const text = fc.string({ unit: "grapheme", maxLength: 40 }).filter((one) => !one.includes("\0"));
  const awkward = fc.constantFrom("", "NULL", "null", "{}", '"', "\\", "a,b", " a ", "{a,b}", "\n", "'", "株式");
  const nanos = fc.maxSafeInteger();
  const instants = fc.date({
    min: new Date("0001-01-01T00:00:00Z"),
    max: new Date("9999-12-31T23:59:59.999Z"),
    noInvalidDate: true,
  });

  returns("text", fc.oneof(text, awkward));
  returns("int8", nanos);
  returns("int4", fc.integer());
  returns(
    "float8",
    fc.double({ noDefaultInfinity: false, noNaN: true }).filter((one) => !Object.is(one, -0)),
  );
  returns("bool", fc.boolean());
  returns("timestamptz", instants);
  returns("bytea", fc.uint8Array({ maxLength: 64 }));
  returns("uuid", fc.uuid());
  returns("jsonb", fc.dictionary(text, fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text))));
  returns("text[]", fc.array(fc.oneof(text, awkward, fc.constant(null)), { maxLength: 8 }));
  returns("int8[]", fc.array(nanos, { maxLength: 8 }));
  returns("timestamptz[]", fc.array(instants, { maxLength: 4 }));
  returns("bytea[]", fc.array(fc.uint8Array({ maxLength: 8 }), { maxLength: 4 }));

  test("null, in every type, is null", async () => {
    for (const type of ["text", "int8", "timestamptz", "bytea", "jsonb", "text[]", "numeric", "uuid"]) {
      expect(await back(type, null)).toBeNull();
      expect(await back(type, undefined)).toBeNull();
    }
  });

  test("what would lose its exactness fails or stays text", async () => {
    await expect(back("int8", "9007199254740993")).rejects.toThrow("beyond 2^53");
    expect(await back("numeric", "9007199254740993.10")).toBe("9007199254740993.10");
    expect(await back("int8", 10n ** 15n)).toBe(10 ** 15);
    expect(
      await back("int4[]", [
        [1, 2],
        [3, 4],
      ]),
    ).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(await back("timestamptz", "2026-11-21 03:00:00.123999+00")).toEqual(new Date("2026-11-21T03:00:00.123Z"));
  });

  test("after a value that cannot be read, or written, everything goes on", async () => {
    await back("int8", "9223372036854775807").catch(() => {});
    await back("text", "nul \0 byte").catch(() => {});
    await back("int4", "zero").catch(() => {});
    expect(await back("int4", 1)).toBe(1);
  });

  test("a failed statement says what Postgres says, with its code", async () => {
    const error = await back("int4", "zero").catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(DatabaseError);
    expect(error).toMatchObject({ code: "22P02" });
  });

  test("a transaction is whole or nothing, a savepoint in it too, and what it threw comes out unchanged", async () => {
    await db.exec("create table kept (n int primary key)");
    const mine = new Error("mine");
    await expect(
      db.transaction(async (tx) => {
        await tx.query("insert into kept values (1)");
        throw mine;
      }),
    ).rejects.toBe(mine);
    const answer = await db.transaction(async (tx) => {
      await tx.query("insert into kept values (2)");
      await tx
        .transaction(async (inner) => {
          await inner.query("insert into kept values (3)");
          await inner.query("insert into kept values (2)");
        })
        .catch((error: DatabaseError) => expect(error.code).toBe("23505"));
      await tx.query("insert into kept values (4)");
      return "done";
    });
    expect(answer).toBe("done");
    expect(await db.query<{ n: number }>("select n from kept order by n")).toEqual([{ n: 2 }, { n: 4 }]);
    await expect(db.transaction((tx) => tx.exec("insert into kept values (5); select 1 / 0"))).rejects.toMatchObject({
      code: "22012",
    });
    expect(await db.query("select n from kept where n = 5")).toEqual([]);
  });

  test("a statement beside transactions never falls into one of them, nor theirs out", async () => {
    await db.exec("create table beside (n int primary key)");
    const busy = Array.from({ length: 120 }, (_, n) => {
      if (n % 3 !== 0) return db.query("insert into beside values ($1)", [n]);
      return db
        .transaction(async (tx) => {
          await Promise.all([n * 1000, n * 1000 + 1].map((m) => tx.query("insert into beside values ($1)", [m + 500])));
          if (n % 2 === 0) throw new Error("rolled back");
        })
        .catch(() => {});
    });
    await Promise.all(busy);
    const rows = await db.query<{ n: number }>("select n from beside order by n");
    const plain = Array.from({ length: 120 }, (_, n) => n).filter((n) => n % 3 !== 0);
    const committed = Array.from({ length: 120 }, (_, n) => n).filter((n) => n % 3 === 0 && n % 2 === 1);
    const expected = [...plain, ...committed.flatMap((n) => [n * 1000 + 500, n * 1000 + 501])];
    expect(rows.map(({ n }) => n)).toEqual(expected.sort((a, b) => a - b));
  });

  test("a transaction in which a statement failed is no success, and one that is over takes nothing more", async () => {
    await db.exec("create table once (n int primary key)");
    const swallowed = db.transaction(async (tx) => {
      await tx.query("insert into once values (1)");
      await tx.query("select 1 / 0").catch(() => {});
    });
    await expect(swallowed).rejects.toBeInstanceOf(DatabaseError);
    const late = await db.transaction(async (tx) => tx);
    await expect(late.query("insert into once values (2)")).rejects.toBeInstanceOf(DatabaseError);
    expect(await db.query("select n from once")).toEqual([]);
  });

  test("a lane keeps the order of its calls without waiting for their answers", async () => {
    await db.exec("create table ordered (place int generated always as identity, n int)");
    const lane = await db.lane();
    await Promise.all(Array.from({ length: 50 }, (_, n) => lane.query("insert into ordered (n) values ($1)", [n])));
    await lane.close();
    const rows = await db.query<{ n: number }>("select n from ordered order by place");
    expect(rows.map(({ n }) => n)).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });

  test("a message is sent by the commit, and only then", async () => {
    const heard: string[] = [];
    const stop = await db.listen("some_channel", (payload) => heard.push(payload));
    await db
      .transaction(async (tx) => {
        await tx.notify("some_channel", "rolled back");
        throw new Error("no");
      })
      .catch(() => {});
    await db.transaction((tx) => tx.notify("some_channel", "committed"));
    const deadline = performance.now() + 5_000;
    while (heard.length === 0 && performance.now() < deadline) await Bun.sleep(2);
    await stop();
    expect(heard).toEqual(["committed"]);
  });

  test("closing twice is closing once, and a closed database says so", async () => {
    const other = await open({ migrated: false });
    await Promise.all([other.db.close(), other.db.close()]);
    await expect(other.db.query("select 1")).rejects.toBeInstanceOf(DatabaseError);
    await expect(other.db.ping(100)).rejects.toBeInstanceOf(DatabaseError);
    await other.drop();
  });
}

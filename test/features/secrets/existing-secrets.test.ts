/** Tests of the set of existing keys: docs/design/keys.md, Keys that exist. */
import { expect, test } from "bun:test";
import { existingSecrets } from "../../../src/features/secrets/existing-secrets.ts";
import { Fingerprints } from "../../../src/features/secrets/fingerprints.ts";
import type { ExistingSecretsPiece } from "../../../src/features/secrets/store/existing-secrets.ts";
import { until } from "../../harness/until.ts";

const hash = (of: string) => Bun.SHA256.hash(of) as Uint8Array;

/** A fake store in which each name is a separate batch of keys. Each read of a batch waits until the test sends it. */
function held(names: () => string[], entries_max?: number) {
  const asked: (() => void)[] = [];
  const failures: unknown[] = [];
  const waits: { ms: number; run: () => void }[] = [];
  let isAway = false;
  const existing = existingSecrets({
    ...(entries_max === undefined ? {} : { entries_max }),
    store: {
      async piece(from): Promise<ExistingSecretsPiece> {
        const at = Number(from ?? 0);
        const name = names()[at];
        const { promise, resolve } = Promise.withResolvers<void>();
        asked.push(resolve);
        await promise;
        if (isAway) throw new Error("away");
        const fingerprints = name === undefined ? new Uint8Array() : hash(name).slice(0, 8);
        return { fingerprints, next: at + 1 < names().length ? String(at + 1) : null };
      },
    },
    failed: (cause) => failures.push(cause),
    clock: {
      after(ms, run) {
        const wait = { ms, run };
        waits.push(wait);
        return () => void waits.splice(waits.indexOf(wait), waits.includes(wait) ? 1 : 0);
      },
    },
  });
  const answer = async () => {
    await until(() => asked.length > 0, 1000, "the store to be asked");
    asked.shift()!();
    await Bun.sleep(0);
  };
  const setAway = (away: boolean) => {
    isAway = away;
  };
  return { existing, asked, answer, failures, waits, setAway };
}

test("what was read counts at once, piece by piece; a start waits for the last one, or so long", async () => {
  const { existing, answer, waits } = held(() => ["newest", "oldest"]);
  existing.reload();
  let isRead = false;
  const reading = existing.isRead(2000).then(() => {
    isRead = true;
  });
  await answer();
  expect(existing.has(hash("newest"))).toBe(true);
  expect(existing.has(hash("oldest"))).toBe(false);
  expect(isRead).toBe(false);
  await answer();
  await reading;
  expect(existing.has(hash("oldest"))).toBe(true);
  expect(existing.count()).toBe(2);
  // The wait of 2000 ms is cancelled. Only the timer for the next reading is left.
  expect(waits.filter(({ ms }) => ms === 2000)).toEqual([]);

  const slow = held(() => ["one"]);
  slow.existing.reload();
  const waited = slow.existing.isRead(2000);
  expect(slow.waits.map(({ ms }) => ms)).toEqual([2000]);
  slow.waits[0]!.run();
  await waited;
});

test("a reading anew forgets who is gone, knows all meanwhile, and keeps who was announced while it went on", async () => {
  let names = ["kept", "gone"];
  const { existing, answer } = held(() => names);
  existing.reload();
  await answer();
  await answer();
  names = ["kept", "second"];
  existing.reload();
  await answer();
  expect(existing.has(hash("gone"))).toBe(true);
  existing.add(hash("announced"));
  await answer();
  await until(() => existing.count() === 3, 1000, "the reading to end");
  expect(existing.has(hash("gone"))).toBe(false);
  for (const name of ["kept", "second", "announced"]) expect(existing.has(hash(name))).toBe(true);
});

test("whoever asks for a reading while one is under way gets one that began later", async () => {
  const names = ["one"];
  const { existing, answer } = held(() => names);
  existing.reload();
  await Bun.sleep(0);
  // The first reading is already past the position at which the new name is inserted.
  names.unshift("missed");
  existing.reload();
  for (let pieces = 0; pieces < 4; pieces++) await answer();
  await until(() => existing.has(hash("missed")), 1000, "the second reading");
  expect(existing.count()).toBe(2);
});

test("a store that fails is asked again, and what is known stays known; after the end nobody is asked", async () => {
  const { existing, asked, answer, failures, waits, setAway } = held(() => ["one", "two"]);
  existing.add(hash("announced"));
  existing.reload();
  setAway(true);
  await answer();
  await until(() => waits.length === 1, 1000, "the pause");
  expect(failures).toHaveLength(1);
  expect(existing.has(hash("announced"))).toBe(true);
  setAway(false);
  waits[0]!.run();
  await answer();
  const stopped = existing.stop();
  await answer();
  await stopped;
  expect(asked).toEqual([]);
});

test("an end does not wait for the pause after a failure", async () => {
  const { existing, asked, answer, waits, setAway } = held(() => ["one"]);
  existing.reload();
  setAway(true);
  await answer();
  await until(() => waits.length === 1, 1000, "the pause");
  let hasStopped = false;
  void existing.stop().then(() => {
    hasStopped = true;
  });
  await until(() => hasStopped, 1000, "the end");
  expect([asked, waits]).toEqual([[], []]);
});

test("no more are kept than fit, and no more are read", async () => {
  const { existing, asked, answer } = held(() => ["one", "two", "three"], 2);
  existing.reload();
  await answer();
  await answer();
  await until(() => existing.count() === 2, 1000, "the reading to end");
  expect(asked).toEqual([]);
  expect(existing.has(hash("three"))).toBe(false);
});

test("within a day of a reading all are read again, and those that no longer exist are forgotten", async () => {
  const { existing, answer, waits } = held(() => ["kept"]);
  existing.reload();
  await answer();
  await until(() => waits.length === 1, 1000, "the reading to end");
  for (const name of ["token 1", "token 2"]) existing.add(hash(name));
  expect(existing.count()).toBe(3);
  const [wait] = waits.splice(0);
  expect(wait!.ms).toBeGreaterThanOrEqual(12 * 3_600_000);
  expect(wait!.ms).toBeLessThanOrEqual(24 * 3_600_000);
  wait!.run();
  await answer();
  await until(() => existing.count() === 1, 1000, "the second reading to end");
  await existing.stop();
  expect(waits).toEqual([]);
});

test("by default three million are kept, which take 32 MiB", async () => {
  const kept = 3 * 2 ** 20;
  const fingerprints = new Uint8Array(Uint32Array.from({ length: 2 * (kept + 1) }, (_, word) => word).buffer);
  const failures: unknown[] = [];
  const existing = existingSecrets({
    store: { piece: async () => ({ fingerprints, next: null }) },
    failed: (cause) => failures.push(cause),
  });
  existing.reload();
  await existing.isRead(10_000);
  expect([existing.count(), failures]).toEqual([kept, []]);
  const alone = new Fingerprints(kept);
  alone.add(fingerprints);
  expect(alone.bytes).toBe(32 * 1024 * 1024);
});

/** bench/governed measures any gateway, and first checks whether it enforces limits at all. */
import { afterEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type Checked, checked } from "../../bench/governed/checks.ts";
import { eachKey, type Gateway, TooSlow } from "../../bench/governed/gateway.ts";
import { Clients } from "../../bench/governed/load.ts";
import { costCells } from "../../bench/governed/report.ts";

const folder = resolve(import.meta.dir, "../../bench/governed");
const has = { budget: true, rate: true, usage: true };
const ending: (() => void)[] = [];

afterEach(() => {
  for (const end of ending.splice(0)) end();
});

test("needs nothing from outside its folder", () => {
  for (const file of new Bun.Glob("**/*.ts").scanSync(folder)) {
    const text = readFileSync(join(folder, file), "utf8");
    const imports = [...text.matchAll(/(?:from|import\()\s*"([^"]+)"/g)].map(([, module]) => module!);
    const outside = imports.filter((module) =>
      module.startsWith(".") ? !resolve(folder, dirname(file), module).startsWith(folder) : !module.startsWith("node:"),
    );
    expect([file, outside]).toEqual([file, []]);
  }
});

/** Runs the checks on a gateway whose statuses `decide` chooses, by the key and by how often that key got a 200. */
async function checkedOf(decide: (key: string | null, answered: number) => number): Promise<Checked> {
  const answered = new Map<string | null, number>();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const key = request.headers.get("authorization")?.replace("Bearer ", "") ?? null;
      const before = answered.get(key) ?? 0;
      const status = decide(key, before);
      if (status === 200) answered.set(key, before + 1);
      return new Response("{}", { status });
    },
  });
  const clients = new Clients({ url: `${server.url.origin}/v1`, model: "any" });
  ending.push(() => {
    clients.stop();
    void server.stop(true);
  });
  const keys = ["budget", "race", "rate"].map((name) => ({ id: name, secret: name }));
  return checked({ has } as Gateway, clients, keys);
}

describe("before anything is measured", () => {
  test("a gateway that governs is said to", async () => {
    const room: Record<string, number> = { budget: 5, race: 5, rate: 10 };
    const found = await checkedOf((key, answered) => {
      if (key === null || !(key in room)) return 401;
      return answered < room[key]! ? 200 : 429;
    });
    expect(found).toEqual({
      key: "refused",
      budget: "5 of 20 (room for 5), others 429",
      race: "5 of 50 (room for 5), others 429",
      rate: "10 of 30 (room for 10), others 429",
    });
  });

  test("one that refuses nobody is said to", async () => {
    const found = await checkedOf(() => 200);
    expect(found).toEqual({
      key: "NOT refused: 200, 200",
      budget: "20 of 20 (room for 5)",
      race: "50 of 50 (room for 5)",
      rate: "30 of 30 (room for 10)",
    });
  });
});

test("keys that take too long to make are a reason, in the place of figures", async () => {
  const requested = Array.from({ length: 30 }, (_, at) => ({
    name: `${at}`,
    limits: { output_tokens: 1, requests_per_minute: 1 },
  }));
  const make = async ({ name }: { name: string }) => {
    await Bun.sleep(20);
    return { id: name, secret: name };
  };
  const setup = { engine_url: "", folder: "", requested };
  const made = await eachKey({ ...setup, keys_ms_max: 60_000 }, make);
  expect(made.map(({ id }) => id)).toEqual(requested.map(({ name }) => name));
  await expect(eachKey({ ...setup, keys_ms_max: 1 }, make)).rejects.toThrow(TooSlow);
});

test("a row says its reason, or its figures with how much of the book is there", () => {
  const row = { gateway: "G", version: "1", settings: "", keys: 100, at: "2026-11-29T12:00:00Z" };
  expect(costCells({ ...row, reason: "not named" })).toContain("not named");
  const range = (least: number, most: number) => ({ least, most });
  const figures = { gateway_us: range(100, 120), stores_us: range(0, 10), in_all_us: 130, requests: 10, failed: 1 };
  const times = { added_p50_ms: range(0.1, 0.25), p99_ms: range(1, 2) };
  const cells = costCells({ ...row, ...figures, ...times, booked: { wanted: 200, found: 100 } });
  expect(cells.join(" | ")).toBe(
    "100 | G | 100 to 120 | 0 to 10 | 130 | 0.1 to 0.3 | 1.0 to 2.0 | 1 of 10 | 50 % | 2026-11-29T12:00Z",
  );
});

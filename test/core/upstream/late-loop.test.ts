/** An engine that has answered in time is not blamed if this process stood still. The engine is a separate process. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Subprocess } from "bun";
import { ask, type Patience } from "../../../src/core/upstream/ask.ts";
import type { AttemptKind } from "../../../src/core/upstream/attempt.ts";
import { busyness } from "../../harness/busyness.ts";
import { patience } from "../../harness/patience.ts";
import { engineClient, question } from "./asking.ts";

setDefaultTimeout(60_000);

/**
 * An engine whose answer begins after the milliseconds of the path's first number, and continues after those of the
 * second; `/never` gets no answer.
 */
const engine = `
const chunk = (delta, finish = null) => "data: " + JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] }) + "\\n\\n";
const server = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, async fetch(request) {
  await request.text();
  const [first, rest] = new URL(request.url).pathname.split("/")[1].split("-");
  if (first === "never") return new Promise(() => {});
  const body = async function* () {
    await Bun.sleep(Number(first));
    yield chunk({ content: "hello" });
    await Bun.sleep(Number(rest));
    yield chunk({}, "stop") + "data: [DONE]\\n\\n";
  };
  return new Response(body(), { headers: { "content-type": "text/event-stream" } });
} });
console.log(server.port);
`;

let child: Subprocess<"ignore", "pipe", "inherit">;
const engines = engineClient();
let port = 0;
beforeAll(async () => {
  child = Bun.spawn([process.execPath, "-e", engine], { stdout: "pipe", stderr: "inherit", stdin: "ignore" });
  const { value } = await child.stdout.getReader().read();
  port = Number(new TextDecoder().decode(value));
});
afterAll(() => child.kill());

async function asked(path: string, waits: Partial<Patience>): Promise<AttemptKind | undefined> {
  let kind: AttemptKind | undefined;
  const asking = question(`http://127.0.0.1:${port}/${path}`, {
    client: engines,
    patience: { ...patience(), ...waits },
    ended: (end) => {
      kind = end.kind;
    },
  });
  for await (const _ of ask(asking));
  return kind;
}

function standStill(ms: number): void {
  const end_ms = performance.now() + ms;
  while (performance.now() < end_ms);
}

/** Blocks the event loop for `stop_ms` repeatedly, with one turn in between, for `total_ms` in all. */
async function starve(stop_ms: number, total_ms: number): Promise<void> {
  const end_ms = performance.now() + total_ms;
  while (performance.now() < end_ms) {
    standStill(stop_ms);
    await Bun.sleep(1);
  }
}

/** Time-outs, each of which is a third of the time for which this process stands still. */
const waits = { connect_ms: 400, first_part_ms: 400, idle_ms: 400 };

describe("while the loop stands still", () => {
  test("whoever connects, begins or goes on in time is not called late", async () => {
    const kinds = Array.from({ length: 40 }, (_, at) => asked(`${1 + at}-1`, waits));
    standStill(1200);
    expect(await Promise.all(kinds)).toEqual(Array(40).fill("answered"));
  });

  test("nor is it when the stop comes after the request has left, or between two parts", async () => {
    const kinds = Array.from({ length: 20 }, (_, at) =>
      at % 2 ? asked("100-1500", { ...waits, idle_ms: 3000 }) : asked("1-300", waits),
    );
    await Bun.sleep(60);
    standStill(1200);
    expect(await Promise.all(kinds)).toEqual(Array(20).fill("answered"));
  });

  test("nor while the loop is starved for long", async () => {
    const kinds = Promise.all(Array.from({ length: 20 }, () => asked("150-1500", { ...waits, idle_ms: 10_000 })));
    await starve(500, 2_000);
    expect(await kinds).toEqual(Array(20).fill("answered"));
  });

  test("whoever says nothing is called late all the same, soon after", async () => {
    const begun_ms = performance.now();
    const kind = asked("never", waits);
    standStill(600);
    expect(await kind).toBe("timeout");
    expect(performance.now() - begun_ms).toBeLessThan(5_000 * busyness());
  });
});

test("an engine with a spare that is not asked is waited for as long as one without", async () => {
  const began_ms = performance.now();
  const waits = { first_part_ms: 1_000, spare: { after_ms: 900, take: () => false } };
  expect(await asked("never", waits)).toBe("timeout");
  const took_ms = performance.now() - began_ms;
  expect(took_ms).toBeGreaterThanOrEqual(990);
  expect(took_ms).toBeLessThan(2_700 * busyness());
});

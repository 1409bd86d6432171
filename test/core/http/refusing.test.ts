// A listener that closes drops nobody: clients that have connected before are answered, and all later ones are refused.
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../../../src/core/http/listen.ts";

/** A minimal app: a listener uses only its fetch. */
function answering(): Parameters<typeof listen>[0] {
  const fetch = async (request: Request) => new Response(await request.text(), { headers: { connection: "close" } });
  return { fetch, server: null } as unknown as Parameters<typeof listen>[0];
}

/**
 * A program that opens `count` connections once the file `go` exists, writes the file `made` when all are connected,
 * and prints the outcome of each: `ok`, or the error.
 */
const client = `
const net = require("node:net"), fs = require("node:fs");
const [port, count, go, made] = process.argv.slice(1);
let connected = 0;
const one = () => new Promise((resolve) => {
  let got = "";
  const socket = net.connect(Number(port), "127.0.0.1", () => {
    socket.write("POST / HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: 5\\r\\n\\r\\nhello");
    connected += 1;
    if (connected === Number(count)) fs.writeFileSync(made, "");
  });
  socket.on("data", (data) => (got += data));
  socket.on("error", (error) => resolve(error.code));
  socket.on("close", () => resolve(got.endsWith("hello") ? "ok" : "cut"));
});
while (!fs.existsSync(go)) await Bun.sleep(2);
console.log(JSON.stringify(await Promise.all(Array.from({ length: Number(count) }, one))));
`;

const folder = mkdtempSync(join(tmpdir(), "sluice-refusing-"));
afterAll(() => rmSync(folder, { recursive: true }));

function clients(url: string, count: number) {
  const [go, made] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()].map((name) => join(folder, name)) as [string, string];
  const words = [process.execPath, "-e", client, new URL(url).port, String(count), go, made];
  const child = Bun.spawn(words, { stdout: "pipe", stderr: "inherit" });
  return {
    go: () => writeFileSync(go, ""),
    areConnected: () => existsSync(made),
    ends: async () => JSON.parse(await child.stdout.text()) as string[],
  };
}

/** Blocks this thread, so that nothing is accepted meanwhile; the system still completes connections. */
function hold(until: () => boolean, ms_max: number): void {
  const deadline = performance.now() + ms_max;
  while (!until() && performance.now() < deadline) Bun.sleepSync(2);
}

const listener = () => listen(answering(), { host: "127.0.0.1", port: 0, idle_ms: 60_000 });

describe("a listener that ends", () => {
  test("answers all clients that had connected, also those that it had not accepted yet", async () => {
    const listening = listener();
    const early = clients(listening.url, 20);
    early.go();
    hold(early.areConnected, 10_000);
    expect(early.areConnected()).toBeTrue();
    await listening.refuse();
    expect(await early.ends()).toEqual(Array(20).fill("ok"));
    const late = clients(listening.url, 3);
    late.go();
    expect(await late.ends()).toEqual(Array(3).fill("ECONNREFUSED"));
    await listening.stop();
  }, 30_000);

  test("takes no new connection before it has closed", async () => {
    const listening = listener();
    const first = clients(listening.url, 1);
    const later = clients(listening.url, 20);
    first.go();
    expect(await first.ends()).toEqual(["ok"]);
    const refused = listening.refuse();
    later.go();
    hold(later.areConnected, 1000);
    expect(later.areConnected()).toBeFalse();
    await refused;
    expect(await later.ends()).toEqual(Array(20).fill("ECONNREFUSED"));
    await listening.stop();
  }, 30_000);

  test("leaves the other listeners of its process alone, such as the operator's", async () => {
    const [ending, other] = [listener(), listener()];
    const held = clients(ending.url, 1);
    held.go();
    expect(await held.ends()).toEqual(["ok"]);
    await ending.refuse();
    const later = clients(other.url, 5);
    later.go();
    expect(await later.ends()).toEqual(Array(5).fill("ok"));
    await Promise.all([ending.stop(), other.stop()]);
  }, 30_000);
});

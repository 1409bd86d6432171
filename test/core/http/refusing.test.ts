// A listener that ends answers the requests that it has, and refuses all others.
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../../../src/core/http/listen.ts";

/** Its fetch is all that a listener asks of an app. */
function answering(wait = async () => {}): Parameters<typeof listen>[0] {
  const fetch = async (request: Request) => {
    const text = await request.text();
    await wait();
    return new Response(text, { headers: { connection: "close" } });
  };
  return { fetch, server: null } as unknown as Parameters<typeof listen>[0];
}

/** Connects so often once the file is there, and says what became of each: `ok`, or why not. */
const client = `
const net = require("node:net"), fs = require("node:fs");
const [port, count, go] = process.argv.slice(1);
const one = () => new Promise((resolve) => {
  let got = "";
  const socket = net.connect(Number(port), "127.0.0.1", () => {
    socket.write("POST / HTTP/1.1\\r\\nhost: x\\r\\ncontent-length: 5\\r\\n\\r\\nhello");
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
  const go = join(folder, Bun.randomUUIDv7());
  const words = [process.execPath, "-e", client, new URL(url).port, String(count), go];
  const child = Bun.spawn(words, { stdout: "pipe", stderr: "inherit" });
  return {
    go: () => writeFileSync(go, ""),
    ends: async () => JSON.parse(await child.stdout.text()) as string[],
  };
}

const listener = () => listen(answering(), { host: "127.0.0.1", port: 0, idle_ms: 60_000 });

describe("a listener that ends", () => {
  test("answers the clients whose requests it has, and refuses all that come later", async () => {
    const release = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    let count = 0;
    const listening = listen(
      answering(async () => {
        if (++count === 20) asked.resolve();
        await release.promise;
      }),
      { host: "127.0.0.1", port: 0, idle_ms: 60_000 },
    );
    const early = clients(listening.url, 20);
    early.go();
    await asked.promise;
    listening.refuse();
    const late = clients(listening.url, 3);
    late.go();
    expect(await late.ends()).toEqual(Array(3).fill("ECONNREFUSED"));
    release.resolve();
    expect(await early.ends()).toEqual(Array(20).fill("ok"));
    await listening.stop();
  }, 30_000);

  test("leaves the other listeners of its process alone, such as the operator's", async () => {
    const [ending, other] = [listener(), listener()];
    const held = clients(ending.url, 1);
    held.go();
    expect(await held.ends()).toEqual(["ok"]);
    ending.refuse();
    const later = clients(other.url, 5);
    later.go();
    expect(await later.ends()).toEqual(Array(5).fill("ok"));
    await Promise.all([ending.stop(), other.stop()]);
  }, 30_000);
});

/** The limits on a body before it is parsed: its depth, its values and members, and the ratio to which it unpacks. */
import { afterAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { model, startService } from "../../harness/engine.ts";

const service = await startService({
  limits:
    "{ body_bytes_max: 3000000, body_depth_max: 20, body_values_max: 5000, body_members_max: 1000, body_names_max: 2600, body_ratio_max: 50 }",
});
afterAll(() => service.stop(), 60_000);

const request = { model, max_tokens: 10, messages: [{ role: "user", content: "hi" }] };
const withMetadata = (metadata: unknown) => JSON.stringify({ ...request, metadata });
const names = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 0]));
const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}0${"}".repeat(levels)}`);

const packers: Record<string, (text: string) => Uint8Array> = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: (text) => brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: zstdCompressSync,
};

async function outcome(body: string, encoding?: string) {
  const headers: Record<string, string> = encoding ? { "content-encoding": encoding } : {};
  const sent = encoding ? packers[encoding]!(body) : body;
  const answer = await service.fetch("/v1/chat/completions", {
    ...{ method: "POST", body: sent },
    headers: { "content-type": "application/json", ...headers },
  });
  const { error } = (await answer.json()) as { error?: { code: string; message: string } };
  return { status: answer.status, code: error?.code, message: error?.message };
}

async function isServed(body: string, encoding?: string) {
  expect(await outcome(body, encoding)).toMatchObject({ status: 200 });
}
async function isTooLarge(says: string, body: string, encoding?: string) {
  const message = expect.stringContaining(says);
  expect(await outcome(body, encoding)).toMatchObject({ status: 413, code: "request_too_large", message });
}

describe("a body", () => {
  test("as deep as may be is served, one level more is not", async () => {
    await isServed(withMetadata(deep(19)));
    expect(await outcome(withMetadata(deep(20)))).toMatchObject({ status: 400, code: "invalid_json" });
  });

  test("brackets and commas in strings are letters", async () => {
    await isServed(withMetadata({ a: '[{",:\\'.repeat(5000) }));
  });

  test("holds so many values, and one more for each 128 bytes", async () => {
    const zeros = (count: number) => withMetadata({ a: Array(count).fill(0) });
    await isServed(zeros(900));
    await isTooLarge("values", zeros(9000));
    await isServed(withMetadata({ a: Array(9000).fill(0), b: "x".repeat(600_000) }));
  });

  test("and so many members, and one more for each 160 bytes", async () => {
    await isServed(withMetadata({ a: names(450), b: names(450) }));
    await isTooLarge("members", `{"x":${JSON.stringify(names(900))},${withMetadata(names(900)).slice(1)}`);
  });

  test("and so many different names, and one more for each 1,024 bytes", async () => {
    const half = (count: number, from: 0 | 1) =>
      Object.fromEntries(Object.entries(names(count)).filter((_, at) => at % 2 === from));
    const named = (count: number, more_bytes: number) =>
      withMetadata({ a: half(count, 0), b: half(count, 1), more: "x".repeat(more_bytes) });
    await isServed(named(3000, 500_000));
    await isTooLarge("names", named(3200, 500_000));
    await isServed(named(3200, 700_000));
  });

  test("unpacks to any ratio up to 1 MiB, and beyond to the limit", async () => {
    await isServed(withMetadata({ a: "x".repeat(700_000) }), "gzip");
    await isTooLarge("50 times its size", withMetadata({ a: "x".repeat(2_000_000) }), "gzip");
  });

  test.each(Object.keys(packers))(
    "is held to its size as %s, too, where it hardly unpacks at all",
    async (encoding) => {
      const random = (bytes: number) => withMetadata({ a: randomBytes((bytes * 3) / 4).toString("base64") });
      const large = random(3_600_000);
      expect(packers[encoding]!(large).length).toBeLessThan(2_900_000);
      await isTooLarge("larger than the limit of 3000000 bytes", large, encoding);
      // The body is accepted for reading; its text may still be too long for the model.
      expect((await outcome(random(2_800_000), encoding)).status).not.toBe(413);
      await isServed(withMetadata({}), encoding);
    },
  );

  test("that is refused as it is read leaves its connection usable", async () => {
    for (let round = 0; round < 3; round++) {
      expect(await outcome(`[${"[],".repeat(500_000)}0]`)).toMatchObject({ status: 413 });
      await isServed(withMetadata({}));
    }
  });

  test("with too many names in an object is told how many there may be", async () => {
    const wide = await outcome(
      `{"metadata":${JSON.stringify(names(4100))},"user":"${"x".repeat(1_900_000)}",${JSON.stringify(request).slice(1)}`,
    );
    expect(wide.message).toContain("'metadata' must be an object of at most 4096 properties");
  });
});

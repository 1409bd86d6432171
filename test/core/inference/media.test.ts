/** The estimated tokens of images, files and audio, before an engine has reported any. */
import { expect, test } from "bun:test";
import { mediaOf } from "../../../src/core/inference/media.ts";
import type { Turn, UserTurn } from "../../../src/core/inference/request.ts";

const of = (...parts: UserTurn["parts"]) => mediaOf({ turns: [{ role: "user", parts } as Turn] });
const file = (bytes: number) => ({ kind: "file", data: "x".repeat(bytes) }) as UserTurn["parts"][number];
const audio = (bytes: number) => ({ kind: "audio", data: "x".repeat(bytes) }) as UserTurn["parts"][number];

test("a text has none", () => {
  expect(of({ kind: "text", text: "hello" })).toEqual({ bytes: 0, tokens: 0 });
});

test("a file and a sound cost tokens by their size, and are added up", () => {
  for (const make of [file, audio]) {
    const [small, large] = [of(make(10_000)), of(make(40_000))];
    expect(small.bytes).toBe(10_000);
    expect(small.tokens).toBeGreaterThan(0);
    expect(large.tokens).toBeGreaterThan(2 * small.tokens);
    expect(of(make(10_000), make(10_000))).toEqual({ bytes: 20_000, tokens: 2 * small.tokens });
  }
});

test("an image costs the same whatever its bytes", () => {
  const image = (url: string) => of({ kind: "image", url });
  expect(image("https://example.com/a.png").tokens).toBe(image(`data:image/png;base64,${"A".repeat(9_000)}`).tokens);
  expect(image("https://example.com/a.png").tokens).toBeGreaterThan(0);
});

/** A profile is summed by the part of the program in which its samples are; idle time belongs to no part. */
import { expect, test } from "bun:test";
import { timeByPart } from "../../bench/speed/profile.ts";

test("each sample counts for its part", () => {
  const frames = [
    ["admit", "file:///root/src/core/admission/batcher.ts"],
    ["serve", "file:///root/src/serve.ts"],
    ["parse", "file:///root/node_modules/postgres/src/connection.js"],
    ["check", "file:///root/node_modules/@scope/name/index.js"],
    ["fetch", ""],
    ["readableStream", "node:stream"],
    ["(garbage collector)", ""],
    ["(idle)", ""],
  ] as const;
  const nodes = frames.map(([functionName, url], id) => ({ id, callFrame: { functionName, url } }));
  const samples = [...nodes.map(({ id }) => id), 0];
  expect(timeByPart({ nodes, samples, timeDeltas: [10, 9, 8, 7, 6, 5, 4, 100, 10] })).toEqual([
    ["src/core/admission", 20],
    ["src", 9],
    ["postgres", 8],
    ["@scope/name", 7],
    ["the runtime, native", 6],
    ["the runtime, JavaScript", 5],
    ["garbage collection", 4],
  ]);
});

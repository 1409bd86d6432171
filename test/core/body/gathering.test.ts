/** A body that arrives in pieces is gathered byte for byte, whatever length was announced. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { Gathering } from "../../../src/core/body/pieces.ts";
import { forAll } from "../protocol/for-all.ts";

test("pieces of any size come out whole, and each piece is given back once", () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { minLength: 1, maxLength: 30 });
  forAll([pieces, fc.nat(10_000), fc.boolean()], 100, (sent, announced, isCopied) => {
    const done: Uint8Array[] = [];
    const body = new Gathering(announced, (piece) => done.push(piece));
    for (const piece of sent) {
      if (isCopied) body.copy(piece);
      else body.add(piece);
    }
    expect(Buffer.from(body.from(0))).toEqual(Buffer.concat(sent));
    expect(new Set(done).size).toBe(done.length);
  });
});

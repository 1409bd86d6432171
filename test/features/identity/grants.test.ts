import { expect, test } from "bun:test";
import { together } from "../../../src/features/identity/grants.ts";

test("that one address is verified says nothing of another in the signed token", () => {
  const info = { email: "ann@acme.example", email_verified: true, groups: ["research"] };
  const signed = (email: string) => ({ sub: "1", email }) as never;
  expect(together(info as never, signed("root@acme.example"))).toMatchObject({
    ...{ email: "root@acme.example", email_verified: false, groups: ["research"] },
  });
  expect(together(info as never, signed("ann@acme.example"))).toMatchObject({ email_verified: true });
  expect(together(info as never, { sub: "1" } as never)).toMatchObject(info);
});

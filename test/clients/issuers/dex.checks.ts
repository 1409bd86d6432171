/** Dex, set up as docs/identity.md says, in front of a real node and a real browser: `npm run test:clients -- dex`. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { startDex } from "./dex.ts";
import type { RealIssuer } from "./issuer.ts";
import { type Place, signInDevice, startPlace } from "./place.ts";
import { everyWay, keptBy, modelsBy, personOf, refresh } from "./ways.ts";

setDefaultTimeout(180_000);

describe("Dex", () => {
  let place: Place<RealIssuer>;
  beforeAll(async () => {
    place = await startPlace((addresses) => startDex(process.env.DEX!, addresses));
  });
  afterAll(() => place?.[Symbol.asyncDispose]());

  everyWay(() => place);

  test("whom Dex knows no more gets no new token: Dex fails at the question, and a suspension ends the rest", async () => {
    using device = await signInDevice(place, "leo");
    const tokens = keptBy(device.home.signInFile(place.serviceUrl));
    await place.issuer.disable("leo");
    for (const _ of [1, 2])
      expect(await refresh(place, tokens)).toMatchObject({ status: 503, error: "temporarily_unavailable" });
    expect(await modelsBy(place, tokens.access_token)).toBe(200);
    await place.sluice.json("person", "suspend", (await personOf(place, "leo")).id);
    expect(await modelsBy(place, tokens.access_token)).toBe(403);
    expect(await refresh(place, tokens)).toMatchObject({ status: 400, error: "invalid_grant" });
  });
});

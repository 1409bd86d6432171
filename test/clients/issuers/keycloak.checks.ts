/**
 * Keycloak, set up as docs/identity.md says, in front of a real node and a real browser: `npm run test:clients --
 * keycloak`.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { decodeJwt } from "jose";
import { busyness } from "../../harness/busyness.ts";
import { until } from "../../harness/until.ts";
import { type Keycloak, startKeycloak } from "./keycloak.ts";
import { type Place, signIn, signInDevice, startPlace } from "./place.ts";
import { everyWay, keptBy, modelsBy, personOf, placesOf, refresh } from "./ways.ts";

setDefaultTimeout(240_000);

describe("Keycloak", () => {
  let place: Place<Keycloak>;
  beforeAll(async () => {
    place = await startPlace((addresses) => startKeycloak(process.env.KEYCLOAK!, addresses));
  }, 600_000);
  afterAll(() => place?.[Symbol.asyncDispose]());

  everyWay(() => place);

  const bearer = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });

  /** Starts a stream with this person's token. The node ends the stream when the person loses access. */
  async function stream(token: string) {
    const body = JSON.stringify({
      model: "meta-llama/llama-3.1-8b-instruct",
      messages: [{ role: "user", content: "[simulator: tps=20 tokens=3000] hello" }],
      ...{ stream: true, max_tokens: 4000 },
    });
    const headers = bearer(token);
    const response = await fetch(`${place.serviceUrl}/v1/chat/completions`, { method: "POST", headers, body });
    expect(response.status).toBe(200);
    return response.text().then((text) => ({ text, at_ms: Date.now() }));
  }

  test("somebody who leaves at Keycloak is out at once: the console, the device, and what runs", async () => {
    const tab = await place.newTab();
    await signIn(place, tab, "sid");
    await tab.page.waitForSelector(".rail");
    using device = await signInDevice(place, "sid");
    const tokens = keptBy(device.home.signInFile(place.serviceUrl));
    const running = stream(tokens.access_token);
    await until(async () => (await place.sluice.json<unknown[]>("request", "list", "--outcome", "running")).length > 0);
    await place.issuer.endSessions("sid");
    const { text, at_ms } = await running;
    // The time is measured from the arrival of Keycloak's request, by this machine's clock.
    const said = /^.*"route":"\/oauth\/backchannel-logout".*$/m;
    await until(() => said.test(place.sluice.stderr()), 5_000, "the logout in the log");
    const { time, ms } = JSON.parse(said.exec(place.sluice.stderr())![0]) as { time: string; ms: number };
    const took_ms = Math.round(at_ms - (Date.parse(time) - ms));
    console.log(`the stream ended ${took_ms} ms after Keycloak's word`);
    expect(took_ms).toBeLessThan(1_000 * busyness());
    expect(text).toContain("revoked_api_key");
    expect(await modelsBy(place, tokens.access_token)).toBe(401);
    expect(await refresh(place, tokens)).toMatchObject({ status: 400, error: "invalid_grant" });
    await tab.page.goto(`${place.consoleUrl}/usage`);
    await tab.page.getByRole("link", { name: /^Sign in with / }).waitFor();
    await tab.context.close();
  });

  test("whom Keycloak lets in no more is out at the next question, in the console and on devices", async () => {
    const tab = await place.newTab();
    await signIn(place, tab, "leo");
    await tab.page.waitForSelector(".rail");
    using device = await signInDevice(place, "leo");
    const tokens = keptBy(device.home.signInFile(place.serviceUrl));
    expect(await modelsBy(place, tokens.access_token)).toBe(200);
    await place.issuer.disable("leo");
    expect(await refresh(place, tokens)).toMatchObject({ status: 400, error: "invalid_grant" });
    expect(await modelsBy(place, tokens.access_token)).toBe(401);
    await place.hourLater();
    await tab.page.goto(`${place.consoleUrl}/usage`);
    await tab.page.getByRole("link", { name: /^Sign in with / }).waitFor();
    await tab.context.close();
  });

  test("a token of another client of the realm calls in the place of a key", async () => {
    const token = await place.issuer.tokenOf("nia");
    expect(await modelsBy(place, token)).toBe(200);
    expect(placesOf(await personOf(place, "nia"))).toEqual(["acme: member"]);
    // The rules evaluate the ID token at a sign-in. By default, that token does not contain the realm's roles.
    expect(decodeJwt(token)).toHaveProperty("realm_access");
    expect(decodeJwt(await place.issuer.tokenOf("nia", "id_token"))).not.toHaveProperty("realm_access");
    // An ID token is meant for its own client only, and an access token whose audience is not Sluice is meant for
    // another service.
    expect(await modelsBy(place, await place.issuer.tokenOf("nia", "id_token"))).toBe(401);
    expect(await modelsBy(place, await place.issuer.tokenOf("nia", "access_token", "other"))).toBe(401);
  });

  test("a job's own token becomes an access token, with the rights of its rule", async () => {
    const assertion = await place.issuer.jobToken();
    const grant_type = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    const body = new URLSearchParams({ grant_type, assertion });
    const answer = await fetch(`${place.serviceUrl}/oauth/token`, { method: "POST", body });
    const given = (await answer.json()) as { access_token: string; scope: string; expires_in: number };
    expect(given.scope).toBe("models:read");
    expect(given.expires_in).toBeLessThanOrEqual(300);
    expect(await modelsBy(place, given.access_token)).toBe(200);
  });
});

// A person signs out at the issuer, while three nodes with one database serve the person's requests: all of them end
// within a second of the issuer's logout request.
import { expect, setDefaultTimeout, test } from "bun:test";
import { Browser } from "../../harness/browser.ts";
import { busyness } from "../../harness/busyness.ts";
import { freePort } from "../../harness/daemon.ts";
import { migratedDatabase } from "../../harness/migrated-database.ts";
import { peopleConfig, secretKey } from "../../harness/people-node.ts";
import { startProvider } from "../../harness/provider.ts";
import { startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";

setDefaultTimeout(90_000);

test("a leaver's running streams end within a second of a back-channel logout, on three nodes", async () => {
  const [database, port] = [await migratedDatabase(), await freePort()];
  const serviceUrl = `http://127.0.0.1:${port}`;
  await using provider = await startProvider({
    redirectUris: [`${serviceUrl}/oauth/callback`],
    backchannelLogoutUri: `${serviceUrl}/oauth/backchannel-logout`,
  });
  provider.claims.set("ann", { name: "Ann", groups: ["research"] });
  const config = peopleConfig({ provider, serviceUrl, consoleUrl: serviceUrl, organization: "acme" });
  const start = (env: Record<string, string>) =>
    startSluice({
      ...{ store: "pglite", dataDir: "unused", config },
      env: { DATABASE_URL: database.url, SLUICE_SECRET_KEY: secretKey, ...env },
    });
  const first = await start({ PORT: String(port) });
  const nodes = [first, ...(await Promise.all([start({}), start({})]))];
  const { id } = await first.json<{ id: string }>("org", "create", "acme", "--plan", "unlimited");

  const post = async <Answer>(path: string, fields: Record<string, string>) => {
    const response = await fetch(serviceUrl + path, { method: "POST", body: new URLSearchParams(fields) });
    return (await response.json()) as Answer;
  };
  const begun = await post<Record<string, string>>("/oauth/device_authorization", { surface: "test" });
  const browser = new Browser();
  const page = await browser.submit(await browser.visit(begun.verification_uri_complete!), "/device");
  await browser.submit(page, "/device/decision", { decision: "approve", organization: id });
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  const { access_token } = await post<{ access_token: string }>("/oauth/token", {
    ...{ grant_type, device_code: begun.device_code! },
  });
  const headers = { authorization: `Bearer ${access_token}`, "content-type": "application/json" };

  const { data } = (await (await fetch(`${serviceUrl}/v1/models`, { headers })).json()) as { data: { id: string }[] };
  const messages = [{ role: "user", content: "[simulator: tps=20 tokens=3000] hello" }];
  const ended: Promise<{ at_ms: number; text: string }>[] = [];
  for (const { url } of nodes) {
    const body = JSON.stringify({ model: data[0]!.id, messages, stream: true, max_tokens: 4000 });
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    expect(response.status).toBe(200);
    ended.push(response.text().then((text) => ({ at_ms: Date.now(), text })));
  }
  const there = await browser.visit(`${provider.issuer}/session/end?client_id=sluice`);
  const xsrf = /name="xsrf" value="([^"]+)"/.exec(there.text)![1]!;
  await browser.send(there, "/session/end/confirm", { xsrf, logout: "yes" });
  const all = await Promise.all(ended);
  // The second is measured from the arrival of the issuer's logout request, by this machine's clock.
  const said = /^.*"route":"\/oauth\/backchannel-logout".*$/m;
  await until(() => said.test(first.stderr()), 5_000, "the logout in the log");
  const { time, ms } = JSON.parse(said.exec(first.stderr())![0]) as { time: string; ms: number };
  const took_ms = all.map(({ at_ms }) => Math.round(at_ms - (Date.parse(time) - ms)));
  if (process.env.TEST_FIGURES) console.log("ended after", took_ms, "ms");
  for (const { text } of all) expect(text).toContain("revoked_api_key");
  for (const one of took_ms) expect(one).toBeLessThan(1_000 * busyness());
  for (const { url } of nodes)
    await until(async () => (await fetch(`${url}/v1/models`, { headers })).status === 401, 1_000, "the token to end");
  await Promise.all(nodes.map((node) => node.stop()));
  await database.drop();
});

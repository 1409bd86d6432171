// HTTPS with a certificate and a key from two files, and a new certificate without a restart: streams go on, new
// connections get the new certificate, and files that cannot be served change nothing.
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { listen } from "../../../src/core/http/listen.ts";
import { authority, daysFromNow, type Identity, written } from "../../harness/certificates.ts";
import { linesOf, linesThen } from "../../harness/log-lines.ts";
import { program, type Sluice, startSluice } from "../../harness/sluice.ts";
import { until } from "../../harness/until.ts";
import { responseIn, type Talk, talk } from "../../harness/websocket.ts";

setDefaultTimeout(150_000);

const folder = mkdtempSync(join(tmpdir(), "sluice-test-https-"));
const ours = authority();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function https(name: string, identity: Identity) {
  const { certificate, key } = written(folder, name, identity);
  const env = { SLUICE_TLS_CERTIFICATE_FILE: certificate, SLUICE_TLS_KEY_FILE: key };
  return { env, start: () => startSluice({ env, ca: ours.certificate }) };
}

/** The serial number of the certificate that a new connection gets. */
function seen(url: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const socket = connect({
    host: "127.0.0.1",
    port: Number(new URL(url).port),
    ca: ours.certificate,
    servername: "localhost",
  });
  socket.once("error", reject).once("secureConnect", () => {
    resolve(new X509Certificate(socket.getPeerCertificate().raw).serialNumber);
    socket.destroy();
  });
  return promise;
}

/** Whether a new connection gets this certificate. It gets none if a listener that is closing cuts it off. */
const shows = async (url: string, identity: Identity) => (await seen(url).catch(() => null)) === serial(identity);

const serial = ({ certificate }: Identity) => new X509Certificate(certificate).serialNumber;

test("serves HTTPS, and its own healthcheck finds it", async () => {
  const own = ours.issue(["localhost", "127.0.0.1"]);
  const { env, start } = https("plain", own);
  const service = await start();
  expect(service.url).toStartWith("https://localhost:");
  expect((await service.fetch("/v1/models")).status).toBe(200);
  expect(await seen(service.url)).toBe(serial(own));
  const asBrowser = { headers: { accept: "text/html" }, tls: { ca: ours.certificate } };
  const page = await (await fetch(service.url, asBrowser)).text();
  expect(page).toContain(`<code>${service.url}/v1</code>`);
  expect(page).toContain(`sluice login ${service.url} --key`);
  expect((await fetch(service.url.replace("https:", "http:")).catch(() => null))?.ok ?? false).toBeFalse();
  // A server that is named by its URL must prove its name, but the command does not trust this test's certificate
  // authority.
  expect((await service.cli("healthcheck", "--url", `${service.url}/readyz`)).code).toBe(1);
  // The port is shared between the listeners of this process's certificates, but not with another process.
  const { port } = new URL(service.url);
  const again = await startSluice({ env: { ...env, PORT: port } }).catch(String);
  expect(again).toContain("the service did not start");
  expect(await service.stop()).toBe(0);
  const onPort = await startSluice({ env: { ...env, PORT: port }, ca: ours.certificate });
  expect((await onPort.cli("healthcheck")).code).toBe(0);
  expect(await onPort.stop()).toBe(0);
});

test("a listener that refuses connections is not opened again by a new certificate", async () => {
  const [first, second] = [ours.issue(["localhost"]), ours.issue(["localhost"])];
  const app = { fetch: () => new Response("here"), server: null };
  const at = { host: "localhost", port: 0, idle_ms: 10_000 };
  const listening = listen(app as unknown as Parameters<typeof listen>[0], at, first);
  expect(await seen(listening.url)).toBe(serial(first));
  await listening.refuse();
  await until(async () => (await seen(listening.url).catch(() => null)) === null, 5_000, "the port to be closed");
  listening.renew(second);
  expect(await seen(listening.url).catch(() => "refused")).toBe("refused");
  await listening.stop();
});

test("a console that begins to listen after a renewal shows the new certificate", async () => {
  const { env } = https("console", ours.issue(["localhost"]));
  const service = await startSluice({ store: "pglite", env, ca: ours.certificate });
  const next = ours.issue(["localhost"]);
  written(folder, "console", next);
  service.signal("SIGHUP");
  await linesThen(service, "certificate_renewed", 1);
  const { url } = await service.json<{ url: string }>("console");
  expect(await seen(url)).toBe(serial(next));
  await service.stop();
});

describe("a new certificate", () => {
  let service: Sluice;
  let model: string;
  const soon = ours.issue(["localhost"], { to: daysFromNow(3) });
  beforeAll(async () => {
    service = await https("node", soon).start();
    ({ id: model } = ((await (await service.fetch("/v1/models")).json()) as { data: { id: string }[] }).data[0]!);
  });
  afterAll(() => service.stop());

  /** Writes a new certificate into the node's files, and waits until it is served. */
  async function renewed(): Promise<Identity> {
    const seen = linesOf(service, "certificate_renewed").length;
    const identity = ours.issue(["localhost"]);
    written(folder, "node", identity);
    service.signal("SIGHUP");
    await linesThen(service, "certificate_renewed", seen + 1);
    return identity;
  }

  test("is served after SIGHUP, and a running stream goes on", async () => {
    const warned = async () => (await service.json<{ warnings: string[] }>("fleet")).warnings;
    await until(async () => (await warned()).length > 0, 20_000, "the warning");
    expect(await warned()).toEqual([expect.stringMatching(/^The certificate of \S+ expires on \d{4}-\d\d-\d\d\. /)]);
    const messages = [{ role: "user", content: "@sim tps=4\nHello" }];
    const stream = await service.post("/v1/chat/completions", { model, messages, stream: true });
    const reader = stream.body!.getReader();
    const decoder = new TextDecoder();
    let text = decoder.decode((await reader.read()).value);
    const second = await renewed();
    await until(() => shows(service.url, second), 20_000, "the new certificate");
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += decoder.decode(part.value);
    expect(text).toContain("data: [DONE]");
    expect((await service.fetch("/v1/models")).status).toBe(200);
    await until(async () => (await warned()).length === 0, 20_000, "no warning");
  });

  test("of TLS 1.2 has no suite without authenticated encryption, either", async () => {
    const isTaken = (ciphers: string) => {
      const { promise, resolve } = Promise.withResolvers<boolean>();
      const { port } = new URL(service.url);
      const asked = { host: "127.0.0.1", port: Number(port), ca: ours.certificate, servername: "localhost" };
      const socket = connect({ ...asked, ciphers, minVersion: "TLSv1.2", maxVersion: "TLSv1.2" });
      socket.once("error", () => resolve(false)).once("secureConnect", () => resolve(true));
      return promise.finally(() => socket.destroy());
    };
    for (const isRenewed of [false, true]) {
      if (isRenewed) await renewed();
      for (const suite of ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"])
        expect([suite, await isTaken(`ECDHE-ECDSA-${suite}`)]).toEqual([suite, true]);
      for (const suite of ["AES128-SHA", "AES256-SHA"])
        expect([suite, await isTaken(`ECDHE-ECDSA-${suite}`)]).toEqual([suite, false]);
    }
  });

  test("that cannot be served changes nothing, and the log says why once", async () => {
    const own = await renewed();
    const refusals = linesOf(service, "configuration_refused").length;
    writeFileSync(join(folder, "node.key"), ours.issue(["localhost"]).key);
    service.signal("SIGHUP");
    const [refused] = await linesThen(service, "certificate_refused", 1);
    expect(JSON.stringify(refused)).toContain("does not belong to the certificate");
    service.signal("SIGHUP");
    await linesThen(service, "configuration_refused", refusals + 2);
    expect(linesOf(service, "certificate_refused")).toHaveLength(1);
    expect(await seen(service.url)).toBe(serial(own));
    expect((await service.fetch("/v1/models")).status).toBe(200);
  });

  test("may come again and again while clients connect", async () => {
    let [served, lost, isOver] = [0, 0, false];
    const clients = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        await seen(service.url).then(
          () => served++,
          () => lost++,
        );
      }
    });
    for (let round = 1; round <= 10; round++) await renewed();
    isOver = true;
    await Promise.all(clients);
    // A listener that closes serves all clients that had connected. Only handshakes that take longer than it waits are
    // lost.
    expect(lost).toBeLessThanOrEqual(clients.length);
    expect(served).toBeGreaterThan(lost);
  });

  test("is found without a signal", async () => {
    const next = ours.issue(["localhost"]);
    written(folder, "node", next);
    await until(() => shows(service.url, next), 30_000, "the new certificate");
  });

  test("leaves a WebSocket open, which then drains with the node", async () => {
    const authorization = `Bearer ${service.key}`;
    using client = await talk(service.url, { authorization }, ours.certificate);
    const ask = async (of: Talk) => responseIn(await of.create({ model, input: "Hello" })).status;
    expect(await ask(client)).toBe("completed");
    await renewed();
    expect(await ask(client)).toBe("completed");
    using other = await talk(service.url, { authorization }, ours.certificate);
    expect(await ask(other)).toBe("completed");
    service.signal("SIGTERM");
    expect([await client.closed(), await other.closed()]).toEqual([1012, 1012]);
    expect(await service.exited).toBe(0);
  });
});

describe("a start is refused", () => {
  const { certificate, key } = written(folder, "pair", ours.issue(["localhost"]));
  const other = written(folder, "other", ours.issue(["localhost"]));
  test.each<[string, string | null, string | null]>([
    ["needs SLUICE_TLS_KEY_FILE, which is not set", certificate, null],
    ["needs SLUICE_TLS_CERTIFICATE_FILE, which is not set", null, key],
    ["does not belong to the certificate", certificate, other.key],
    ["which holds no certificate in PEM", key, key],
    ["which holds no private key", certificate, certificate],
    ["which does not exist", `${certificate}.not`, key],
  ])("with what %s", async (why, certificate, key) => {
    const env = {
      ...{ PATH: process.env.PATH ?? "", PORT: "0", SLUICE_DATA_DIR: join(folder, "data") },
      ...(certificate && { SLUICE_TLS_CERTIFICATE_FILE: certificate }),
      ...(key && { SLUICE_TLS_KEY_FILE: key }),
    };
    const started = Bun.spawn([...program, "serve"], { env, stdout: "pipe", stderr: "pipe" });
    const said = await started.stderr.text();
    expect([(await started.exited) === 0, said]).toEqual([false, expect.stringContaining(why)]);
    expect(said).not.toContain("PRIVATE KEY");
  });
});

test("an expired certificate is served, for a client that looks will say so", async () => {
  const late = ours.issue(["localhost"], { to: daysFromNow(-0.1) });
  const service = await https("expired", late).start();
  await expect(seen(service.url)).rejects.toThrow();
  expect(await service.stop()).toBe(0);
});

// What a token of an issuer costs beside a key, and what forged tokens of 40 addresses cost honest callers:
// `bun bench/identity-tokens.ts [requests]`. One node with the embedded database; keys and tokens take turns in one run.
import { model, startService } from "../test/harness/engine.ts";
import { issuerKey, startIssuer } from "../test/harness/issuer.ts";
import { secretKey } from "../test/harness/people-node.ts";

const requests = Number(process.argv[2] ?? 400);
const addresses = 40;
const p50 = (times: number[]) => times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!;

async function main(): Promise<void> {
  const issuer = await startIssuer();
  const more = `
identity:
  service_url: http://127.0.0.1:1
  issuers: [{ issuer: "${issuer.issuer}", client_id: sluice, client_secret: secret, audiences: [sluice-api] }]
  rules: [{ claim: groups, has: research, organization: acme, role: member }]
`;
  const env = { SLUICE_SECRET_KEY: secretKey, SLUICE_TRUSTED_PROXIES: "127.0.0.1,::1" };
  const service = await startService({ more, sluice: { env } });
  await service.json("org", "create", "acme", "--plan", "unlimited");
  const { key } = await service.json<{ key: string }>("key", "create", "--org", "acme", "--name", "k");
  const token = await issuer.sign({ sub: "ann", aud: "sluice-api", groups: ["research"] });
  const ask = async (path: string, credential: string, address: string, body?: object) => {
    const began = performance.now();
    const response = await fetch(service.url + path, {
      method: body ? "POST" : "GET",
      headers: {
        authorization: `Bearer ${credential}`,
        "x-forwarded-for": address,
        ...(body ? { "content-type": "application/json" } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    await response.arrayBuffer();
    return { status: response.status, ms: performance.now() - began };
  };
  const operations = {
    models: (credential: string) => ask("/v1/models", credential, "203.0.113.1"),
    chat: (credential: string) =>
      ask("/v1/chat/completions", credential, "203.0.113.1", { model, messages: [{ role: "user", content: "Hi." }] }),
  };
  async function paired(count: number) {
    const result: Record<string, string> = {};
    for (const [name, operation] of Object.entries(operations)) {
      const times = { key: [] as number[], token: [] as number[] };
      for (let at = 0; at < count; at++)
        for (const [kind, credential] of at % 2
          ? ([
              ["key", key],
              ["token", token],
            ] as const)
          : ([
              ["token", token],
              ["key", key],
            ] as const)) {
          const { status, ms } = await operation(credential);
          if (status !== 200) throw new Error(`${name} by ${kind}: ${status}`);
          times[kind].push(ms);
        }
      const [a, b] = [p50(times.key), p50(times.token)];
      result[name] = `key ${a.toFixed(3)} ms, token ${b.toFixed(3)} ms, x ${(b / a).toFixed(3)}`;
    }
    return result;
  }
  await paired(100);
  console.log("quiet", await paired(requests));
  const stranger = { ...(await issuerKey()), kid: issuer.keys[0]!.kid };
  const [head, , signature] = (await issuer.sign({ sub: "x", aud: "sluice-api" }, { key: stranger })).split(".");
  const seconds = Math.floor(Date.now() / 1000);
  const answers: Record<string, number> = {};
  let stopped = false;
  const flood = Array.from({ length: addresses }, async (_, at) => {
    for (let n = 0; !stopped; n++) {
      const claims = { iss: issuer.issuer, sub: `${at}-${n}`, aud: "sluice-api", iat: seconds, exp: seconds + 600 };
      const forged = `${head}.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.${signature}`;
      const { status } = await ask("/v1/models", forged, `198.51.100.${at}`);
      answers[status] = (answers[status] ?? 0) + 1;
    }
  });
  console.log("flood begins", await paired(Math.ceil(requests / 4)), answers);
  console.log("flood goes on", await paired(requests), answers);
  stopped = true;
  await Promise.all(flood);
  console.log("quiet again", await paired(requests));
  await service.stop();
  await issuer[Symbol.asyncDispose]();
}

await main();

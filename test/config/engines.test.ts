/**
 * The settings of upstreams, models and routes: how an engine is reached, its timeouts, and its dialect, whose rows
 * `dialect_rows` overrides.
 */
import { describe, expect, test } from "bun:test";
import { ConfigurationError } from "../../src/config/problem.ts";
import { type DialectName, dialectNames, dialects } from "../../src/core/protocol/dialects.ts";
import { authority, certificate, othersCertificate } from "../core/upstream/http1/certificates.ts";
import { configured, expectProblem, load, problemsOf, withModel } from "./reading.ts";

const files: Record<string, string> = {
  "ca.pem": authority,
  "own.pem": certificate.cert,
  "own.key": certificate.key,
  "other.key": othersCertificate.key,
  "notes.txt": "hello",
};

function withUpstream(fields: object) {
  const text = `upstreams: { main: ${JSON.stringify({ url: "https://engine.example/v1", ...fields })} }`;
  const readOther = (path: string) => (path in files ? new TextEncoder().encode(files[path]) : null);
  const loaded = load(text, {}, readOther);
  return loaded instanceof ConfigurationError ? loaded.problems.join("\n") : loaded.upstreams[0]!;
}

test("an upstream has headers of its own, and none that Sluice sets", () => {
  expect(withUpstream({ headers: { "x-team": "blue" } })).toMatchObject({ headers: { "x-team": "blue" } });
  expect(withUpstream({ headers: { Host: "other" } })).toContain("is set by Sluice itself");
  // Header names are case-insensitive: in any spelling they replace Sluice's own headers, and no two may be equal.
  expect(
    withUpstream({ headers: { "User-Agent": "Ours" }, identity_headers: { session: "X-Session-ID" } }),
  ).toMatchObject({ headers: { "user-agent": "Ours" }, identityHeaders: { session: "x-session-id" } });
  expect(withUpstream({ headers: { "X-Team": "blue", "x-team": "red" } })).toContain(
    "is there already, in other capitals",
  );
  expect(withUpstream({ headers: { "x-a": "b\r\nc: d" } })).toContain("must be text that a header can carry");
  expect(withUpstream({ headers: { "x a": "b" } })).toContain("must be the name of a header");
});

test("replicas are engines of one name, and divide the weight of its routes", () => {
  const main = (replicas: string) =>
    `{ url: "http://one:8000/v1", replicas: [${replicas}], cache_salt: true, reuse: none, check: { path: /healthz } }`;
  const file = withModel({ routes: [{ upstream: "main", model: "m", weight: 3 }] });
  const text = (replicas: string) => file.replace('{ url: "http://127.0.0.1:9000/v1" }', main(replicas));
  const { catalog, upstreams } = configured(text('"http://two:8000", "http://three:8000/v1"'));
  expect(upstreams.map(({ name, url }) => `${name} ${url}`)).toEqual([
    "main http://one:8000/v1",
    "main http://two:8000/v1",
    "main http://three:8000/v1",
  ]);
  const [model] = catalog.models.values();
  expect(model!.routes.map(({ upstream, weight }) => [upstream, weight])).toEqual(upstreams.map((one) => [one, 1]));
  expect(upstreams[2]).toMatchObject({
    isCacheSalted: true,
    reuse: "none",
    check: { path: "/healthz", interval_ms: 5000 },
  });
  expectProblem("upstreams.main.replicas[0]: is there already", text('"http://one:8000/v1/"'));
  expectProblem("upstreams.main.replicas[0]: must be a URL", text('"two"'));
});

test("a name may be resolved again and again, with its own settings", () => {
  const text = (main: string) => withModel().replace('{ url: "http://127.0.0.1:9000/v1" }', main);
  const [engine] = configured(text('{ url: "http://vllm.default.svc:8000/v1", resolve: {} }')).upstreams;
  expect(engine!.resolve).toEqual({ interval_ms: 5000, addresses_max: 64, family: "all", servers: [] });
  const servers = ["10.0.0.10", "127.0.0.1:8600", "fd00::10", "[fd00::10]:53"];
  const named = (resolve: object, more = "") =>
    text(`{ url: "http://vllm:8000", resolve: ${JSON.stringify(resolve)}${more} }`);
  expect(configured(named({ servers, family: "ipv4" })).upstreams[0]!.resolve).toMatchObject({ servers });
  const wrong = ["dns.test", "10.0.0.10:0", "10.0.0.10:65536", "10.0.0.256", "fd00::10:", "[10.0.0.1]:53", ":53"];
  for (const server of wrong)
    expectProblem("upstreams.main.resolve.servers[0]: must be an address", named({ servers: [server] }));
  expectProblem("servers[1]: is there already", named({ servers: ["10.0.0.10", "10.0.0.10"] }));
  for (const address of ["10.0.0.1", "[fd00::1]"])
    expectProblem(
      "upstreams.main.resolve: needs a url with a name",
      text(`{ url: "http://${address}:8000", resolve: {} }`),
    );
  expectProblem("upstreams.main.resolve: is beside replicas", named({}, ', replicas: ["http://two"]'));
  expect(problemsOf(named({ interval_ms: 99 }))).toHaveLength(1);
  expect(problemsOf(named({ addresses_max: 257 }))).toHaveLength(1);
  expectProblem("must be one of all, ipv4, ipv6", named({ family: "ipv5" }));
});

test("settings that an engine's protocol lacks are refused: a salt in Messages, a check without a path", () => {
  expect(withUpstream({ protocol: "anthropic-messages", cache_salt: true })).toContain("is no field of Messages");
  expect(withUpstream({ check: { path: "health" } })).toContain("must be a path from the root");
});

describe("tls", () => {
  test("trusts the authorities of a file, and shows a certificate", () => {
    const tls = { ca_file: "ca.pem", certificate_file: "own.pem", key_file: "own.key" };
    expect(withUpstream({ tls })).toMatchObject({ tls: { ca: authority, certificate } });
    expect(withUpstream({ tls: { ca_file: "ca.pem" } })).toMatchObject({ tls: { ca: authority, certificate: null } });
  });

  for (const [tls, problem] of [
    [{ ca_file: "missing.pem" }, "upstreams.main.tls.ca_file: missing.pem, "],
    [{ ca_file: "notes.txt" }, "which holds no certificate in PEM"],
    [{ certificate_file: "own.pem" }, "key_file: certificate_file needs it; give both"],
    [{ certificate_file: "own.pem", key_file: "other.key" }, "which does not belong to the certificate in own.pem"],
  ] as const) {
    test(`${JSON.stringify(tls)} is refused: ${problem}`, () => expect(withUpstream({ tls })).toContain(problem));
  }
});

test("a model's time-outs stand before its upstream's, each by its name", () => {
  const { catalog } = configured(withModel({ timeouts: { idle_ms: 100 } }));
  const [route] = catalog.models.get("acme/writer-1")!.routes;
  expect(route?.timeouts).toEqual({ ...route!.upstream.timeouts, idle_ms: 100 });
});

test("a route's context is at most its model's", () => {
  const withContext = (context_window: number) =>
    withModel({ routes: [{ upstream: "main", model: "writer", context_window }] });
  const { catalog } = configured(withContext(4096));
  expect(catalog.models.get("acme/writer-1")?.routes[0]?.contextTokens).toBe(4096);
  expect(problemsOf(withContext(8193)).join()).toContain("must be at most the model's (8192)");
});

const file = (fields: string) => `upstreams: { main: { url: "http://127.0.0.1:9000/v1", ${fields} } }\n`;
const dialectIn = (fields: string) => configured(file(fields)).upstreams[0]?.dialect;

describe("the dialect of an upstream", () => {
  test.each(dialectNames)("%s is its row of the table", (name: DialectName) => {
    expect(dialectIn(`dialect: ${name}`)).toEqual(dialects[name]);
  });

  test("is generic where the file has none", () => {
    expect(dialectIn("api_key: x1")).toEqual(dialects.generic);
  });

  test("has the file's rows in place of its own, one by one", () => {
    const rows = `dialect_rows: { cap: max_completion_tokens, reasoning: [reasoning_content], effort: { max: xhigh, minimal: "" },
      finish_reasons: { done: stop }, stops_max: 16, tools_max: 9, load_waiting: [mine:waiting] }`;
    const { vllm } = dialects;
    expect(dialectIn(`dialect: vllm, ${rows}`)).toEqual({
      ...vllm,
      cap: "max_completion_tokens",
      reasoning: { ...vllm.reasoning, out: ["reasoning_content"] },
      effort: { ...vllm.effort, max: "xhigh", minimal: null },
      finishReasons: { ...vllm.finishReasons, done: "stop" },
      bounds: { ...vllm.bounds, stops_max: 16, tools_max: 9 },
      load: { ...vllm.load, waiting: ["mine:waiting"] },
    });
  });

  test("is one of the table, and its rows are of their kinds", () => {
    expectProblem("upstreams.main.dialect", file("dialect: vlm"));
    expectProblem("upstreams.main.dialect_rows.cap", file("dialect_rows: { cap: tokens }"));
    expectProblem("upstreams.main.dialect_rows.effort.max", file("dialect_rows: { effort: { max: Very High } }"));
  });
});

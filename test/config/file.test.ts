import { describe, expect, test } from "bun:test";
import { loadConfiguration } from "../../src/config/load.ts";
import { upstreamProtocols } from "../../src/core/upstream/codecs.ts";
import { configured, example, expectProblem, problemsOf, withModel } from "./reading.ts";

const upstream = (fields: string) => `upstreams: { main: { url: "http://127.0.0.1:9000/v1", ${fields} } }\n`;

describe("sluice.yaml", () => {
  test("the example in the repository loads, with every section in force", () => {
    const { catalog, upstreams, metering, limits } = configured(example, { MAIN_KEY: "slumber" });
    expect(upstreams.map(({ name, url, apiKey }) => [name, url, apiKey])).toEqual([
      ["main", "http://127.0.0.1:9000/v1", "slumber"],
      ["spare", "http://127.0.0.1:9001/v1", null],
      ["fleet", "http://vllm.models.svc.cluster.local:8000/v1", null],
      ["simulator", "http://simulator.invalid/v1", null],
    ]);
    expect(upstreams[1]?.timeouts).toEqual({
      connect_ms: 5_000,
      first_part_ms: 120_000,
      first_part_spare_ms: 12_000,
      idle_ms: 60_000,
      total_ms: 3_600_000,
    });
    const writer = catalog.models.get("acme/writer-1");
    expect(writer).toMatchObject({
      ownedBy: "acme",
      created: 1790000000,
      contextTokens: 131_072,
      outputTokens_max: 16_384,
      prices: { input: 100_000, cachedInput: 10_000, cacheWrite: 125_000, output: 400_000 },
      extraParams: ["top_k", "min_p"],
    });
    expect(writer?.routes.map(({ upstream, ...route }) => [upstream.name, route])).toEqual([
      ["main", { model: "writer-awq", priority: 0, weight: 1 }],
      ["spare", { model: "writer", priority: 1, weight: 1 }],
      ["fleet", { model: "writer", priority: 2, weight: 1 }],
    ]);
    expect(catalog.plans.get("team")).toEqual({
      name: "team",
      session: 3_000_000_000,
      week: 15_000_000_000,
      month: 48_000_000_000,
      requestsPerMinute: 300,
      tokensPerMinute: 5_000_000,
      concurrentRequests: 16,
    });
    expect(metering).toEqual(configured(null).metering);
    expect(limits).toMatchObject({ body_bytes_max: 33_554_432, drain_delay_ms: 5000, drain_ms: 25_000 });
  });

  test("a limit may be the whole fleet's: with Redis, or on the embedded database, and of requests alone", () => {
    const shared = upstream("concurrent_max: 32, scope: fleet");
    const postgres = { DATABASE_URL: "postgres://x@y/z" };
    const capacityOf = (text: string, env = {}) => configured(text, env).upstreams[0]?.capacity;
    expect(capacityOf(shared)).toMatchObject({ concurrent_max: 32, isShared: true });
    expect(capacityOf(shared, { ...postgres, REDIS_URL: "redis://x" })?.isShared).toBe(true);
    expect(capacityOf(upstream("concurrent_max: 32, scope: process"), postgres)?.isShared).toBeUndefined();
    expect(problemsOf(shared, postgres)).toEqual([
      "upstreams.main.scope is fleet, which needs Redis (REDIS_URL), because nodes share the limit there: set it, or remove the setting and divide concurrent_max among the nodes",
    ]);
    const tokens = "tokens_in_flight_max: 9";
    expect(problemsOf(upstream(`scope: fleet, ${tokens}`))).toEqual([
      "1:62: upstreams.main.scope: is fleet, which counts requests and not tokens; remove tokens_in_flight_max, or scope",
    ]);
    expectProblem("upstreams.main.scope", upstream("scope: all"));
    const route = withModel({ routes: [{ upstream: "main", model: "m", tokens_in_flight_max: 9 }] });
    expect(problemsOf(route.replace('/v1"', '/v1", concurrent_max: 4, scope: fleet'))).toEqual([
      expect.stringContaining(
        "models[0].routes[0].tokens_in_flight_max: is for an engine with scope: fleet, which counts requests and not tokens; remove it",
      ),
    ]);
    const own = withModel({ routes: [{ upstream: "main", model: "m", concurrent_max: 2 }] });
    const routes = configured(own.replace('/v1"', '/v1", scope: fleet')).catalog.models.get("acme/writer-1")?.routes;
    expect(routes?.[0]?.capacity).toMatchObject({ concurrent_max: 2, isShared: true });
  });

  test("an engine may get a priority by plan, in a header that is named, and be asked for running counts", () => {
    const whole = upstream("identity_headers: { priority: x-p }, priorities: { pro: -1 }, running_usage: timings");
    expect(configured(whole).upstreams[0]).toMatchObject({
      ...{ identityHeaders: { priority: "x-p" }, priorities: { pro: -1 }, runningUsage: "timings" },
    });
    expectProblem("priorities: needs identity_headers.priority", upstream("priorities: { pro: 1 }"));
    expectProblem("identity_headers.priority: needs priorities", upstream("identity_headers: { priority: x-p }"));
    expectProblem(
      "running_usage: needs an engine that speaks openai-chat",
      upstream("protocol: openai-responses, running_usage: usage"),
    );
  });

  test("a server of mail has its defaults, and gets a password encrypted, or not from elsewhere", () => {
    const smtp = (fields: string) => `smtp: { host: smtp.example, from: sluice@acme.example, ${fields} }\n`;
    expect(configured(smtp("recipient_domains: [Acme.Example]")).smtp).toMatchObject({
      ...{ tls: "starttls", from_name: "Sluice", ca: null, recipient_domains: ["acme.example"] },
    });
    expect(configured("log: { level: info }\n").smtp).toBeNull();
    const signedIn = "user: sluice, password: s3cret";
    expectProblem("smtp.tls: is off, and the password would be sent in plain text", smtp(`${signedIn}, tls: "off"`));
    expect(configured(smtp(`${signedIn}, tls: "off"`).replace("smtp.example", "localhost")).smtp?.tls).toBe("off");
    expectProblem("smtp.user: needs password", smtp("user: sluice"));
    expectProblem("smtp.password: needs user", smtp("password: s3cret"));
    expectProblem("smtp.ca_file: ", smtp("ca_file: /nowhere.pem"));
    for (const from of ["Sluice <sluice@acme.example>", "sluice", '"sluice@acme.example\\r\\nBcc: x@y.example"'])
      expectProblem("smtp.from: must be an address of mail", `smtp: { host: smtp.example, from: ${from} }\n`);
  });

  test("only an engine that speaks openai-chat may continue an answer, and only a chat's", () => {
    const continuing = withModel({ routes: [{ upstream: "main", model: "m", continue: true }] });
    expect(configured(continuing).catalog.models.get("acme/writer-1")?.routes[0]?.continues).toBe(true);
    for (const protocol of ["anthropic-messages", "openai-responses"])
      expectProblem(
        "models[0].routes[0].continue: needs an engine that speaks openai-chat",
        continuing.replace('/v1"', `/v1", protocol: ${protocol}`),
      );
    const completing = withModel({ kind: "completion", routes: [{ upstream: "main", model: "m", continue: true }] });
    expectProblem("models[0].routes[0].continue: is for models of the kind chat; remove it", completing);
  });

  test("an engine may take instructions at the head alone", () => {
    const inside = (instructions: string) => {
      const routes = [{ upstream: "main", model: "writer", instructions }];
      return configured(withModel({ routes })).catalog.models.get("acme/writer-1")?.routes[0]?.instructionsInside;
    };
    expect(inside("head")).toBe(false);
    expect(inside("anywhere")).toBeUndefined();
  });

  test("what a model leaves out is filled in", () => {
    const model = configured(withModel()).catalog.models.get("acme/writer-1");
    expect(model).toMatchObject({
      ownedBy: "acme",
      outputTokens_max: 8192,
      prices: { input: 1000, cachedInput: 1000, cacheWrite: 1000, output: 2000 },
      extraParams: [],
    });
    expect(model?.capabilities.size).toBe(0);
  });

  test("a value may be written once and referred to (&anchor and *alias)", () => {
    const text = `
upstreams: { main: { url: "http://127.0.0.1:9000/v1" } }
metering: { currency: EUR }
models:
  - { id: a/a, created: 1, context_window: 9, prices: &prices { input: 0.007, output: 0.008 }, routes: &routes [{ upstream: main, model: a }] }
  - { id: a/b, created: 1, context_window: 9, prices: *prices, routes: *routes }`;
    expect(configured(text).catalog.models.get("a/b")?.prices.output).toBe(8000);
  });

  test("CRLF, a byte order mark and JSON are fine", () => {
    expect(configured(`\uFEFF${withModel().replaceAll("\n", "\r\n")}`).catalog.models.size).toBe(1);
    expect(configured('{"plans": {"team": {"session": 5}}}').catalog.plans.get("team")?.session).toBe(5e9);
  });
});

const sectionNames =
  "server, upstreams, models, plans, metering, limits, messages, responses, answers, reload, log, metrics, telemetry, images, reports, webhooks, smtp, identity";
const anAmount = "must be an amount from 0.000000001 to 1000000, with 9 decimals at most";
const nothing = "is empty; remove the file to use the defaults, or create one with: sluice init --upstream URL";

describe("a mistake in sluice.yaml is named with line, column and field", () => {
  test.each<[name: string, text: string, ...problems: string[]]>([
    ["nothing in it", "", nothing],
    ["comments alone", "# plans:\n#  pro: {}\n", nothing],
    ["plain text", "hello", `1:1: must be a mapping of fields (${sectionNames}), not "hello"`],
    ["a list", "- a", `1:1: must be a mapping of fields (${sectionNames}), not a list`],
    ["a tab", "plans:\n\tpro: {}", "2:1: is indented with a tab; use spaces"],
    [
      "uneven indentation",
      "plans:\n    pro: {}\n  more: {}\n",
      "3:1: is not indented like the lines around it, or follows an unclosed bracket",
    ],
    ["two colons", "plans: pro: {}", "1:8: has two ':' on one line, or its text needs quotes"],
    ["an open quote", 'plans: "pro', "1:12: has no closing quote or bracket, or no ':' after a name"],
    [
      "two documents",
      "plans: {}\n---\nplans: {}",
      "2:1: starts a second document (---); the file must contain only one",
    ],
    ["an unknown field", "modles: []", "1:1: modles: is not a known field; did you mean 'models'?"],
    ["an unknown field like no other", "colour: red", `1:1: colour: is not a known field; known are ${sectionNames}`],
    [
      "an unknown field in camel case",
      withModel({ maxOutputTokens: 5 }),
      "2:163: models[0].maxOutputTokens: is not a known field; did you mean 'max_output_tokens'?",
    ],
    [
      "a merge key",
      "plans:\n  a: &a { session: 1 }\n  b:\n    <<: *a\n",
      "4:5: plans.b.<<: is not a known field; merge keys are not supported, write the fields out",
    ],
    ["a field twice", "plans: {}\nplans: {}", "2:1: plans: is a duplicate; first on line 1"],
    ["a plan twice", "plans:\n  team: {}\n  team: { session: 5 }", "3:3: plans.team: is a duplicate; first on line 2"],
    ["a name that is no text", "? [a, b]\n: 1", "1:3: has a name that is not plain text; write name: value"],
    [
      "a name of Object.prototype",
      "plans: { __proto__: { session: 1 } }\nconstructor: 1",
      "1:10: plans.__proto__: must be a name: letters, digits, '.', '_' and '-', at most 63, starting with a letter or digit",
      `2:1: constructor: is not a known field; known are ${sectionNames}`,
    ],
    [
      "an alias of nothing",
      "plans: *nothing",
      "1:8: plans: is an alias (*) without an earlier anchor (&); if it is text, put it in quotes",
    ],
    [
      "a missing field",
      "upstreams:\n  main: {}",
      "2:9: upstreams.main.url: is missing; it must be text of 1 to 2048 characters",
    ],
    ["a field without a value", "plans:\n  team:\n    session:", `3:13: plans.team.session: ${anAmount}, not empty`],
    [
      "a number in quotes",
      'plans: { team: { requests_per_minute: "600" } }',
      '1:39: plans.team.requests_per_minute: must be a whole number from 1 to 1000000000, not "600"; write it without quotes',
    ],
    [
      "a number with separators",
      "plans: { team: { session: 1_000_000 } }",
      `1:27: plans.team.session: ${anAmount}, not "1_000_000"; write only the digits`,
    ],
    [
      "a fraction",
      "plans: { team: { concurrent_requests: 1.5 } }",
      '1:39: plans.team.concurrent_requests: must be a whole number from 1 to 1000000, not "1.5"',
    ],
    [
      "an infinite number",
      "metering: { lease_s: .inf }",
      '1:22: metering.lease_s: must be a number from 0.1 to 3600, not ".inf"',
    ],
    [
      "a limit that nothing passes",
      "plans: { team: { concurrent_requests: 0 } }",
      '1:39: plans.team.concurrent_requests: must be a whole number from 1 to 1000000, not "0"',
    ],
    [
      "a limit beyond what is exact",
      "plans: { team: { month: 1000000000000001 } }",
      `1:25: plans.team.month: ${anAmount}, not "1000000000000001"`,
    ],
    [
      "an unknown protocol",
      'upstreams: { main: { url: "http://x", protocol: openai } }',
      `1:49: upstreams.main.protocol: must be one of ${upstreamProtocols.join(", ")}, not "openai"`,
    ],
    [
      "a capability with a slip",
      withModel({ capabilities: ["tool"] }),
      "2:179: models[0].capabilities[0]: must be one of tools, parallel_tools, vision, reasoning, structured_output, logprobs, files, audio_input, not \"tool\"; did you mean 'tools'?",
    ],
  ])("%s", (_, text, ...problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  test("a setting that could match nothing is refused", () => {
    const said = (text: string) => problemsOf(text).map((problem) => problem.replace(/^\d+:\d+: /, ""));
    const refused = (says: string, fields: Record<string, unknown>, more = "") =>
      expect(said(withModel(fields, more))).toEqual([says]);
    refused("models[0].routes: must be a list of 1 to 32 items, not an empty one", { routes: [] });
    refused("models[0].routes: is missing; it must be a list of 1 to 32 items", { routes: undefined });
    refused("models[0].routes[0].upstream: names no upstream of this file; did you mean 'main'?", {
      routes: [{ upstream: "mian", model: "m" }],
    });
    refused("models[0].routes[0].upstream: names no upstream of this file; known are main, simulator", {
      routes: [{ upstream: "elsewhere", model: "m" }],
    });
    refused("models[0].routes: all have weight 0, so no request could use them; give at least one a weight", {
      routes: [{ upstream: "main", model: "m", weight: 0 }],
    });
    const twice = { upstream: "main", model: "m" };
    refused("models[0].routes[1]: is the same as models[0].routes[0]; increase the weight of that one instead", {
      routes: [twice, { ...twice, priority: 1 }],
    });
    refused("models[0].max_output_tokens: must be at most the context_window (8192)", { max_output_tokens: 8193 });
    refused("models[0].capabilities: has parallel_tools without tools; add tools", {
      capabilities: ["parallel_tools"],
    });
    refused("models[0].capabilities[1]: repeats models[0].capabilities[0]", { capabilities: ["tools", "tools"] });
    refused("models[0].extra_params[1]: is a field that every request may have; remove it", {
      extra_params: ["top_k", "messages"],
    });
    const nobodys = ["best_of", "ignore_eos", "min_tokens", "priority", "chat_template", "kv_transfer_params"];
    expect(
      said(withModel({ extra_params: ["top_k", "min_p", "repetition_penalty", "chat_template_kwargs", ...nobodys] })),
    ).toEqual(
      nobodys.map((name, at) =>
        expect.stringMatching(new RegExp(`\\[${at + 4}\\]: is '${name}', which .+; remove it$`)),
      ),
    );
    refused(
      "models[0].extra_params[0]: is 'ignore_eos', which changes how much is generated, which the service limits and counts; remove it",
      { extra_params: ["ignore_eos"] },
    );
    refused(
      "metering.checkpoint_s: must be shorter than lease_s (2), or leases lapse between checkpoints",
      {},
      "metering: { currency: USD, lease_s: 2, checkpoint_s: 2 }",
    );
    refused(
      "server.read_pause_ms_min: must not be more than read_pause_ms_max (50)",
      {},
      "server: { read_pause_ms_max: 50, read_pause_ms_min: 60 }",
    );
    expect(problemsOf('upstreams: { a: { url: "http://a" }, b: { url: "http://b" } }')).toEqual([
      "1:12: upstreams: are 2, but without models it is unclear which model each one serves; add models with routes",
    ]);
    expect(problemsOf('upstreams: { simulator: { url: "http://a" } }')).toEqual([
      "1:25: upstreams.simulator: 'simulator' is the name of the built-in engine; choose another name",
    ]);
    expect(problemsOf("models: []")).toEqual(["1:9: models: must be a list of 1 to 1000 items, not an empty one"]);
  });

  test("a model id stands once, and has the form vendor/model_name of at most 256 characters", () => {
    const model = (id: string) =>
      `{ id: "${id}", created: 1, context_window: 9, prices: { input: 0, output: 0 }, routes: [{ upstream: simulator, model: m }] }`;
    const ids = (...list: string[]) =>
      problemsOf(`metering: { currency: USD }\nmodels: [${list.map(model).join(", ")}]`);
    expect(ids("a/b", "a/c", "A/b")).toEqual([]);
    expect(ids(`a/${"b".repeat(254)}`)).toEqual([]);
    expect(ids("a/b", "a/b")[0]).toEndWith("models[1].id: is already the id of models[0]");
    for (const id of ["", "a", "a/", "/a", "a/b/c", "a b/c", "a/b?", `a/${"b".repeat(255)}`]) {
      expect(ids(id)[0]).toContain("models[0].id: must be a model id of the form vendor/model_name");
    }
  });

  test("at most 20 are shown, in the order of the file, and the rest are counted", () => {
    const problems = problemsOf(Array.from({ length: 30 }, (_, index) => `wrong${index}: 1`).join("\n"));
    expect(problems).toHaveLength(21);
    expect(problems.slice(0, 20).map((problem) => Number.parseInt(problem, 10))).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
    expect(problems[20]).toBe("and 10 more problems");
  });

  test("a problem is one line, whatever the file holds", () => {
    for (const problem of problemsOf('"one\\ntwo\\e[31m": 1\nplans: { a: "x\\ny" }')) {
      expect(problem).not.toMatch(/\p{Cc}/u);
    }
  });
});

describe("a hostile file is refused quickly", () => {
  const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]"];
  for (const [from, to] of ["ab", "bc", "cd", "de", "ef", "fg", "gh", "hi"]) {
    bomb.push(`${to}: &${to} [${Array.from({ length: 9 }, () => `*${from}`).join(", ")}]`);
  }

  const strange = Array.from({ length: 200 }, (_, index) => `k${index}: 1`).join(", ");
  const routes = Array.from({ length: 32 }, () => `{ ${strange} }`);
  const manyOfOne = `models:\n  - &m { routes: [${routes.join(", ")}] }\n${"  - *m\n".repeat(999)}`;

  test.each<[name: string, text: string]>([
    ["10 MB", "x".repeat(10_000_000)],
    ["aliases of aliases", `${bomb.join("\n")}\nmodels: *i`],
    ["aliases of aliases in a valid place", `models: &m\n${"  - *m\n".repeat(1000)}`],
    ["a thousand models of one list of routes", manyOfOne],
    ["brackets", `plans: ${"[".repeat(50_000)}`],
    ["closed brackets", `plans: ${"[".repeat(5000)}${"]".repeat(5000)}`],
    ["deep indentation", Array.from({ length: 500 }, (_, depth) => `${" ".repeat(depth)}a:`).join("\n")],
    ["dashes", "- ".repeat(50_000)],
    ["names", Array.from({ length: 20_000 }, (_, index) => `k${index}: 1`).join("\n")],
    ["plans", `plans: {${Array.from({ length: 20_000 }, (_, index) => `k${index}: {}`).join(", ")}}`],
    ["a long name", `${"x".repeat(900_000)}: 1`],
    ["variables", `plans: "${"${".repeat(400_000)}"`],
    ["NUL", "plans: {}\0"],
  ])("%s", (_, text) => {
    const problems = problemsOf(text);
    expect(problems.length).toBeGreaterThan(0);
    expect(problems.length).toBeLessThanOrEqual(21);
    expect(problems.join("\n").length).toBeLessThan(8000);
  });

  test("bytes that are no UTF-8", () => {
    const latin = loadConfiguration({
      env: {},
      readFile: () => new Uint8Array([0x61, 0x3a, 0xe9]),
    });
    expect((latin as Error).message).toContain("is not UTF-8 text; save it as UTF-8");
  });
});

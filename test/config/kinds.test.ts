/**
 * `sluice init` tests by requests which kind each of an engine's models has, and writes it to the file. If the
 * responses do not show the kind, the file says so.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { kindFindings, kindIn } from "../../src/config/check/kinds.ts";
import { checkUpstream } from "../../src/config/check/upstream.ts";
import { asker } from "../../src/config/engine.ts";
import { initConfiguration } from "../../src/config/init.ts";
import type { ModelKind } from "../../src/core/inference/model.ts";
import { authority } from "../harness/certificates.ts";
import { startSimulator } from "../harness/simulator.ts";
import { configured, engineAt } from "./reading.ts";

const stops: (() => unknown)[] = [];
afterAll(async () => {
  for (const stop of stops) await stop();
});

type Answers = Record<string, object | number>;

/**
 * Starts an engine with one model. For each path, the value is the response, or its status if it is a number; all other
 * paths return 404.
 */
function engine(answers: Answers): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const path = new URL(request.url).pathname.replace("/v1", "");
      if (path === "/models") return Response.json({ data: [{ id: "acme/one" }] });
      const answer = answers[path] ?? 404;
      return typeof answer === "number"
        ? Response.json({ error: { message: "no" } }, { status: answer })
        : Response.json(answer);
    },
  });
  stops.push(() => server.stop(true));
  return `http://127.0.0.1:${server.port}/v1`;
}

const message = { choices: [{ message: { role: "assistant", content: "a" } }] };
const text = { choices: [{ text: "a" }] };
const vector = { data: [{ embedding: [0.6, 0.8] }, { embedding: [0.8, 0.6] }] };
/** Two equal vectors. Their cosine is 1, and so differs from the score in `ranks`. */
const score = { data: [{ embedding: [0.2, 0, 1e-9] }, { embedding: [0.2, 0, 1e-9] }] };
/** A rerank result whose score is the cosine of the two vectors of `vector`. */
const ranks = { results: [{ index: 0, relevance_score: 0.96 }] };

const engines: [what: string, answers: Answers, kind: ModelKind | null][] = [
  ["that chats, and completes too", { "/chat/completions": message, "/completions": text }, "chat"],
  ["that has no template for chats", { "/chat/completions": 400, "/completions": text }, "completion"],
  ["that embeds, and ranks by its vectors", { "/embeddings": vector, "/rerank": ranks }, "embedding"],
  [
    "that was started to rank",
    { "/chat/completions": 501, "/completions": 501, "/embeddings": score, "/rerank": ranks },
    "rerank",
  ],
  ["that embeds, and is too busy to chat", { "/chat/completions": 429, "/embeddings": vector }, null],
  ["that fails at chats as often as it is asked", { "/chat/completions": 500, "/embeddings": vector }, "embedding"],
  ["that answers something else", { "/chat/completions": {}, "/completions": {}, "/embeddings": {} }, null],
  ["that wants another key", { "/chat/completions": 401, "/completions": 401 }, null],
];

describe("a model", () => {
  test.each(engines)("%s", async (_, answers, kind) => {
    const url = engine(answers);
    expect(kindIn(await kindFindings(asker(null, fetch, "openai-chat"), url, "acme/one"))).toBe(kind);

    const { yaml } = await initConfiguration({ engines: [engineAt(url)], fetch, nowSeconds: 1, check: async () => [] });
    const entry = parse(yaml).models[0];
    const isChat = kind === null || kind === "chat";
    expect(entry.kind).toBe(kind === "chat" ? undefined : (kind ?? "chat"));
    expect(yaml.includes("kind: chat   # a guess: its answers do not tell")).toBe(kind === null);
    expect("capabilities" in entry).toBe(isChat);
    expect("output" in entry.prices).toBe(isChat || kind === "completion");
    expect(configured(yaml).catalog.models.get("acme/one")?.kind ?? "chat").toBe(kind ?? "chat");
  });

  test("of the simulator: whatever it is asked it answers, and its kind is chat", async () => {
    const { url, stop } = await startSimulator();
    stops.push(stop);
    const found = await kindFindings(asker(null, fetch, "openai-chat"), url, "m");
    expect(found.map(({ verdict }) => verdict)).toEqual(["yes", "yes", "yes", "yes"]);
    expect(kindIn(found)).toBe("chat");
  });

  test("that does not chat is not asked for what only chats have, and the file says which paths it answers", async () => {
    let isAsked = false;
    const check = async () => {
      isAsked = true;
      return [];
    };
    const url = engine({ "/embeddings": vector, "/rerank": ranks });
    const { yaml } = await initConfiguration({ engines: [engineAt(url)], fetch, nowSeconds: 1, check });
    expect(isAsked).toBe(false);
    expect(yaml).toContain("kind: embedding   # it answers /embeddings and /rerank\n");
  });
});

test("upstream check: finds the kind, adds a model with it, and says where the file has another", async () => {
  const url = engine({ "/embeddings": vector });
  const yaml = (kind: string) => `upstreams: { main: { url: "${url}" } }
metering: { currency: USD }
models:
  - { id: acme/one, ${kind}created: 1, context_window: 512, prices: { input: 1 }, routes: [{ upstream: main, model: acme/one }] }
`;
  const checked = (text: string, model?: string) =>
    checkUpstream({
      name: "main",
      model,
      extent: "usual",
      configuration: configured(text),
      file: parse(text),
      fetch,
      nowSeconds: 1,
      check: () => Promise.reject(new Error("no chat is asked for")),
    });
  const right = await checked(yaml("kind: embedding, "));
  expect(right.findings.map(({ does, verdict }) => [does, verdict])).toEqual([
    ["answers /chat/completions", "no"],
    ["answers /completions", "no"],
    ["answers /embeddings", "yes"],
    ["answers /rerank", "no"],
  ]);
  expect([right.additions, right.notes]).toEqual([[], []]);
  const wrong = await checked(yaml("kind: rerank, "));
  expect(wrong.notes).toEqual([
    "acme/one is of the kind rerank, and the engine answers /embeddings: set kind: embedding and its prices yourself.",
  ]);
  const added = await checked(yaml("kind: embedding, "), "acme/two");
  expect(added.additions).toMatchObject([{ path: ["models"], value: { id: "acme/two", kind: "embedding" } }]);
});

test("upstream check: lists and asks as requests do, with the authority and the headers of the upstream", async () => {
  const issuer = authority();
  const { certificate: cert, key } = issuer.issue(["127.0.0.1"]);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert, key },
    fetch: ({ url, headers }) => {
      if (headers.get("x-own") !== "1") return new Response("", { status: 401 });
      const { pathname } = new URL(url);
      if (pathname === "/v1/models") return Response.json({ data: [{ id: "acme/one" }] });
      return pathname === "/v1/embeddings" ? Response.json(vector) : new Response("", { status: 404 });
    },
  });
  stops.push(() => server.stop(true));
  const text = `upstreams: { main: { url: "https://127.0.0.1:${server.port}/v1", headers: { x-own: "1" } } }
metering: { currency: USD }
`;
  const configuration = configured(text);
  const upstreams = configuration.upstreams.map((one) => ({
    ...one,
    tls: { ca: issuer.certificate, certificate: null },
  }));
  const { model, findings } = await checkUpstream({
    name: "main",
    extent: "usual",
    configuration: { ...configuration, upstreams },
    file: parse(text),
    fetch,
    nowSeconds: 1,
    check: () => Promise.reject(new Error("no chat is asked for")),
  });
  expect([model, kindIn(findings)]).toEqual(["acme/one", "embedding"]);
});

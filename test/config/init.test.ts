// biome-ignore-all lint/suspicious/noTemplateCurlyInString: the tests need `${…}` in plain strings
import { afterAll, describe, expect, test } from "bun:test";
import type { Configuration } from "../../src/config/configuration.ts";
import { probeEngine } from "../../src/config/engine.ts";
import { draftConfiguration, initConfiguration } from "../../src/config/init.ts";
import { publicIds } from "../../src/config/public-id.ts";
import { schemaText } from "../../src/config/settings/file.ts";
import { authority } from "../harness/certificates.ts";
import { configured, engineAt, type Variables } from "./reading.ts";

const nowSeconds = 1_795_000_000;
const servers: { stop(force: boolean): unknown }[] = [];
afterAll(() => {
  for (const server of servers) server.stop(true);
});

type Answer = unknown | ((request: Request) => Response | Promise<Response>);

/** A certificate of an authority that no client trusts. */
function unknownIdentity() {
  const { certificate: cert, key } = authority().issue(["127.0.0.1"]);
  return { cert, key };
}

/** Starts an engine with these paths, which responds with 404 to all others. Returns its origin. */
function engine(answers: Record<string, Answer>): string {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      const answer = answers[new URL(request.url).pathname];
      if (answer === undefined) return new Response("Not Found", { status: 404 });
      return typeof answer === "function" ? answer(request) : Response.json(answer);
    },
  });
  servers.push(server);
  return `http://127.0.0.1:${server.port}`;
}

/** Returns the file that `sluice init` writes for an engine, and the configuration that results from it. */
async function drafted(url: string, apiKey: string | null = null, env: Variables = {}) {
  const draft = await initConfiguration({ engines: [engineAt(url, apiKey)], fetch, nowSeconds });
  const configuration = configured(draft.yaml, env);
  expect([...configuration.catalog.models.keys()]).toEqual(draft.models);
  return { ...draft, configuration, models: [...configuration.catalog.models.values()] };
}

const routesOf = ({ catalog }: Configuration) =>
  [...catalog.models.values()].flatMap(({ routes }) => routes.map(({ upstream, model }) => [upstream.url, model]));

const vllm = {
  object: "list",
  data: [
    {
      id: "Qwen/Qwen3-32B",
      object: "model",
      created: 1_794_000_000,
      owned_by: "vllm",
      root: "Qwen/Qwen3-32B",
      parent: null,
      max_model_len: 32_768,
      permission: [],
    },
  ],
};

describe("sluice init", () => {
  test("vLLM: its window, and the rest from the catalog, where it knows the model", async () => {
    const origin = engine({ "/v1/models": vllm });
    const { yaml, models, configuration, schema } = await drafted(`${origin}/v1`);
    expect(models).toMatchObject([
      { id: "Qwen/Qwen3-32B", ownedBy: "Alibaba", contextTokens: 32_768, outputTokens_max: 32_768 },
    ]);
    expect(models[0]?.capabilities).toEqual(new Set(["tools", "parallel_tools", "reasoning", "structured_output"]));
    expect(routesOf(configuration)).toEqual([[`${origin}/v1`, "Qwen/Qwen3-32B"]]);
    // The parameters that client libraries for vLLM send, without those that would let a client change what the service
    // controls.
    expect(models[0]?.extraParams).toEqual(["top_k", "min_p", "repetition_penalty", "chat_template_kwargs"]);
    expect(yaml.split("\n")[0]).toBe("# yaml-language-server: $schema=./sluice.schema.json");
    expect(schema).toBe(schemaText());
  });

  test("a URL with or without /v1, with slashes at the end, or with a path of its own", async () => {
    const origin = engine({ "/v1/models": vllm, "/proxy/v1/models": vllm });
    for (const written of [origin, `${origin}/`, `${origin}/v1/`]) {
      expect((await probeEngine(written, null, fetch)).url).toBe(`${origin}/v1`);
    }
    expect((await probeEngine(`${origin}/proxy`, null, fetch)).url).toBe(`${origin}/proxy/v1`);
    const bare = engine({ "/models": vllm });
    expect((await probeEngine(bare, null, fetch)).url).toBe(bare);
  });

  test("llama.cpp: the window it was started with, what its template can do, and a name out of a path", async () => {
    const list = {
      object: "list",
      data: [
        {
          id: "/models/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
          object: "model",
          created: 1_794_000_000,
          owned_by: "llamacpp",
          meta: { vocab_type: 2, n_vocab: 128_256, n_ctx_train: 131_072, n_embd: 4096 },
        },
      ],
    };
    const props = {
      default_generation_settings: { n_ctx: 16_384 },
      modalities: { vision: false, audio: false },
      chat_template_caps: { supports_tools: true, supports_tool_calls: true, supports_parallel_tool_calls: false },
    };
    const { models } = await drafted(engine({ "/v1/models": list, "/props": props }));
    expect(models[0]).toMatchObject({ id: "meta-llama/Meta-Llama-3.1-8B-Instruct-Q4_K_M", contextTokens: 16_384 });
    expect(models[0]?.capabilities).toEqual(new Set(["tools", "structured_output", "logprobs"]));
    expect(models[0]?.extraParams).toEqual(["top_k", "min_p", "chat_template_kwargs"]);
    const older = await drafted(engine({ "/v1/models": list }));
    expect(older.models[0]?.contextTokens).toBe(131_072);
  });

  test("Ollama: window and capabilities model by model, the embedding models with their kind; also where only its own API is there", async () => {
    const show = async (request: Request) => {
      const { model } = (await request.json()) as { model: string };
      if (model.startsWith("nomic")) {
        return Response.json({ capabilities: ["embedding"], model_info: { "nomic-bert.context_length": 2048 } });
      }
      return Response.json({
        capabilities: ["completion", "tools", "thinking", "vision"],
        model_info: { "general.architecture": "qwen3", "qwen3.context_length": 40_960 },
      });
    };
    const tags = { models: [{ name: "qwen3:8b", model: "qwen3:8b" }, { name: "nomic-embed-text:latest" }] };
    const list = {
      object: "list",
      data: [
        { id: "qwen3:8b", object: "model", created: 1_794_000_000, owned_by: "library" },
        { id: "nomic-embed-text:latest", object: "model", created: 1_794_000_000, owned_by: "library" },
      ],
    };
    const origin = engine({ "/v1/models": list, "/api/tags": tags, "/api/show": show });
    const { models, configuration } = await drafted(origin);
    expect(models).toMatchObject([
      { id: "qwen/qwen3:8b", contextTokens: 40_960, created: 1_794_000_000 },
      { kind: "embedding", contextTokens: 2048 },
    ]);
    expect(models[0]?.capabilities).toEqual(
      new Set(["tools", "parallel_tools", "vision", "reasoning", "structured_output", "logprobs"]),
    );
    const both = (url: string) => [
      [`${url}/v1`, "qwen3:8b"],
      [`${url}/v1`, "nomic-embed-text:latest"],
    ];
    expect(routesOf(configuration)).toEqual(both(origin));
    const old = engine({ "/api/tags": tags, "/api/show": show });
    expect(routesOf((await drafted(old)).configuration)).toEqual(both(old));
  });

  test("Ollama: the context that it serves, where it says so, and else a word beside the model's own", async () => {
    const shown: Record<string, unknown> = {
      "loaded:4b": { model_info: { "qwen3.context_length": 262_144 } },
      "own:8b": { model_info: { "qwen3.context_length": 262_144 } },
      "made:8b": { model_info: { "qwen3.context_length": 262_144 }, parameters: 'num_ctx    16384\nstop    "<|end|>"' },
      "small:1b": { model_info: { "old.context_length": 2048 }, parameters: "temperature 1\nnum_ctx 8192" },
    };
    const names = Object.keys(shown);
    const show = async (request: Request) => {
      const { model } = (await request.json()) as { model: string };
      return Response.json({ capabilities: ["completion"], ...(shown[model] as object) });
    };
    const answers = {
      "/v1/models": { data: names.map((id) => ({ id, owned_by: "library" })) },
      "/api/tags": { models: names.map((name) => ({ name })) },
      "/api/show": show,
    };
    const ps = { models: [{ name: "loaded:4b", model: "loaded:4b", context_length: 4096 }] };
    const { models, yaml } = await drafted(engine({ ...answers, "/api/ps": ps }));
    expect(models.map(({ contextTokens }) => contextTokens)).toEqual([4096, 262_144, 16_384, 2048]);
    const windows = yaml.split("\n").filter((line) => line.includes("context_window"));
    expect(windows.map((line) => line.includes("ollama ps"))).toEqual([false, true, false, false]);
    const silent = await drafted(engine(answers));
    expect(silent.yaml.match(/ollama ps/g)).toHaveLength(2);
  });

  test("an aggregator: windows, caps and capabilities as it lists them", async () => {
    const listed = {
      ...{ id: "acme/writer", created: 1_794_000_000, context_length: 65_536 },
      architecture: { input_modalities: ["text", "image", "file"] },
      top_provider: { max_completion_tokens: 4096 },
      supported_parameters: ["tools", "reasoning", "response_format", "logprobs"],
    };
    const { models } = await drafted(engine({ "/v1/models": { data: [listed] } }));
    expect(models[0]).toMatchObject({ id: "acme/writer", contextTokens: 65_536, outputTokens_max: 4096 });
    expect(models[0]?.capabilities).toEqual(
      new Set(["tools", "vision", "reasoning", "structured_output", "logprobs", "files"]),
    );
  });

  test("a Messages engine is asked in its own way", async () => {
    const origin = engine({
      "/v1/models": (request: Request) =>
        request.headers.get("x-api-key") === "slumber" && request.headers.has("anthropic-version")
          ? Response.json({ data: [{ type: "model", id: "claude-writer-1", created_at: "2026-02-01T00:00:00Z" }] })
          : new Response("no", { status: 401 }),
    });
    const protocol = "anthropic-messages" as const;
    const { yaml, models } = await initConfiguration({
      engines: [engineAt(origin, "slumber")],
      protocol,
      fetch,
      nowSeconds,
    });
    expect(models).toEqual(["anthropic/claude-writer-1"]);
    const configuration = configured(yaml, { SLUICE_UPSTREAM_KEY: "slumber" });
    expect(configuration.upstreams).toMatchObject([{ protocol, apiKey: "slumber" }]);
    expect(configuration.catalog.models.get("anthropic/claude-writer-1")?.created).toBe(1_769_904_000);
  });

  test("the key goes to the engine, and only its variable's name into the file", async () => {
    const origin = engine({
      "/v1/models": (request: Request) =>
        request.headers.get("authorization") === "Bearer hunter2-hunter2"
          ? Response.json(vllm)
          : new Response("no", { status: 401 }),
    });
    const env = { SLUICE_UPSTREAM_KEY: "hunter2-hunter2" };
    const { yaml, configuration } = await drafted(origin, "hunter2-hunter2", env);
    expect(yaml).not.toContain("hunter2");
    expect(configuration.upstreams[0]?.apiKey).toBe("hunter2-hunter2");
    const refused = (key: string | null) => initConfiguration({ engines: [engineAt(origin, key)], fetch, nowSeconds });
    expect(refused(null)).rejects.toThrow("needs a key. Set SLUICE_UPSTREAM_KEY.");
    const second = { ...engineAt(origin, null, "gpu"), keyVariable: "SLUICE_UPSTREAM_KEY_GPU" };
    expect(initConfiguration({ engines: [second], fetch, nowSeconds })).rejects.toThrow("Set SLUICE_UPSTREAM_KEY_GPU.");
    expect(refused("wrong-key")).rejects.toThrow(`The engine at ${origin}/v1 refuses the key.`);
    expect(refused("two words")).rejects.toThrow("The engine's key contains a space");
  });

  test("if the engine does not report a value, the file marks it as a guess", async () => {
    const { yaml, models } = await drafted(engine({ "/v1/models": { data: [{ id: "writer" }] } }));
    expect(models[0]).toMatchObject({ id: "local/writer", created: nowSeconds, contextTokens: 131_072 });
    expect(yaml.match(/# a guess: the engine does not report it/g)).toHaveLength(2);
  });

  test("a server that is no engine is refused with that reason", async () => {
    const nobody = engine({});
    const refusal = async (url: string) => {
      try {
        await probeEngine(url, null, fetch);
        return "no refusal";
      } catch (thrown) {
        return (thrown as Error).message;
      }
    };
    expect(await refusal(nobody)).toBe(
      `No list of models at ${nobody}/v1: ${nobody}/v1/models returned 404. Is this the base URL of an engine, including /v1?`,
    );
    expect(await refusal(engine({ "/v1/models": { data: [] } }))).toContain("lists no models. Load a model");
    expect(await refusal(engine({ "/v1/models": () => new Response("<html>") }))).toContain("No list of models");
    // llama.cpp and vLLM respond with 503 while they load the model.
    const loading = engine({ "/v1/models": () => Response.json({ error: "Loading model" }, { status: 503 }) });
    expect(await refusal(loading)).toBe(
      `The engine at ${loading}/v1 answered 503: it still loads its model, or is overloaded. Wait until it is ready, then try again.`,
    );
    expect(await refusal("http://127.0.0.1:1")).toBe(
      "Nothing answers at http://127.0.0.1:1/v1. Start the engine, or correct the URL.",
    );
    const strange = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: unknownIdentity(), fetch: () => new Response() });
    servers.push(strange);
    expect(await refusal(`https://127.0.0.1:${strange.port}`)).toMatch(/not trusted here .*set NODE_EXTRA_CA_CERTS/);
    expect(await refusal("localhost:8000")).toStartWith("The engine's URL must be a URL that begins with http://");
    const astray = engine({ "/v1/models": () => Response.redirect("http://127.0.0.1:1/v1/models") });
    expect(await refusal(astray)).toContain("No list of models");
  });

  test("whatever an engine calls its models, the file loads", async () => {
    const names = [
      ...["", " ", "a b", "a/b/c", "../..", "/", "${HOME}", "$${X}", 'quo"te', "back\\slash", "x: y # z", "- x"],
      ...["naïve", "same", "same", "local/same", "same.gguf", "x".repeat(512), "x".repeat(513), "\u0000", "new\nline"],
      ...["\uD800", "hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "C:\\models\\phi-4.gguf", "*x", "&x"],
      "accounts/fireworks/models/glm-4p6",
    ];
    const list = [
      ...names.map((id) => ({ id })),
      null,
      5,
      "text",
      { id: 5 },
      { max_model_len: 9 },
      [],
      { name: "named" },
    ];
    const odd = { id: "odd", max_model_len: -1, created: 1e15, context_length: "8192", supported_parameters: "tools" };
    const huge = { id: "huge", max_model_len: 2 ** 53 - 1, created: 3 };
    const { configuration, models } = await drafted(engine({ "/v1/models": { data: [...list, odd, huge] } }));
    const usable = names.filter(
      (name) => name.length > 0 && name.length <= 512 && name.isWellFormed() && !/\p{Cc}/u.test(name),
    );
    const asked = routesOf(configuration).map(([, model]) => model);
    expect(asked).toEqual([...new Set([...usable, "named", "odd", "huge"])]);
    expect(models.at(-1)?.contextTokens).toBe(100_000_000);
  });

  test("a thousand models are enough", async () => {
    const data = Array.from({ length: 1500 }, (_, index) => ({ id: `m${index}`, max_model_len: 9 }));
    expect((await drafted(engine({ "/v1/models": { data } }))).models).toHaveLength(1000);
  });

  test("a draft without models has a message", () => {
    const upstream = {
      name: "main",
      url: "http://x/v1",
      protocol: "openai-chat",
      keyVariable: null,
      nowSeconds,
    } as const;
    expect(draftConfiguration([{ ...upstream, models: [] }])).toEndWith("models:\n");
  });
});

describe("several engines", () => {
  const card = (id: string, max_model_len: number) => ({ ...vllm.data[0], id, root: id, max_model_len });
  const both = () => ({
    one: engine({ "/v1/models": { ...vllm, data: [card("Qwen/Qwen3-32B", 32_768), card("acme/one", 4_096)] } }),
    two: engine({ "/v1/models": { ...vllm, data: [card("Qwen/Qwen3-32B", 16_384), card("acme/two", 8_192)] } }),
  });

  test("become upstreams; a model of both is one, with a route to each and the smaller window", async () => {
    const { one, two } = both();
    const engines = [engineAt(one, null, "gpu-1"), { ...engineAt(two, "two-key", "gpu-2"), keyVariable: "GPU_2" }];
    const { yaml, models } = await initConfiguration({ engines, fetch, nowSeconds });
    expect(models).toEqual(["Qwen/Qwen3-32B", "acme/one", "acme/two"]);
    expect(yaml).not.toContain("two-key");
    const { catalog, upstreams } = configured(yaml, { GPU_2: "two-key" });
    expect(upstreams.map(({ name, apiKey }) => [name, apiKey])).toEqual([
      ["gpu-1", null],
      ["gpu-2", "two-key"],
    ]);
    const shared = catalog.models.get("Qwen/Qwen3-32B")!;
    expect(shared.contextTokens).toBe(16_384);
    expect(shared.routes.map(({ upstream, model }) => [upstream.name, model])).toEqual([
      ["gpu-1", "Qwen/Qwen3-32B"],
      ["gpu-2", "Qwen/Qwen3-32B"],
    ]);
    expect(catalog.models.get("acme/two")!.routes.map(({ upstream }) => upstream.name)).toEqual(["gpu-2"]);
  });
});

describe("public ids", () => {
  test.each([
    ["meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"],
    ["qwen3:8b", "qwen/qwen3:8b"],
    ["gpt-oss-20b", "openai/gpt-oss-20b"],
    ["hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "unsloth/Qwen3-8B-GGUF:Q4_K_M"],
    ["/srv/models/phi-4-Q8_0.gguf", "microsoft/phi-4-Q8_0"],
    ["something", "local/something"],
  ])("%s becomes %s", (name, id) => {
    expect(publicIds([name])).toEqual([id]);
  });

  test("two names never share one", () => {
    expect(publicIds(["a b", "a_b", "a?b", "a!b"])).toEqual(["local/a-b", "local/a_b", "local/a-b-2", "local/a-b-3"]);
  });
});

// Tests that LiteLLM and LangChain for Python recognize the error for an input that is too long, in every protocol,
// whether the service or an engine refuses the input. Requests to other machines are blocked. The two libraries run
// separately, because LiteLLM needs older versions of openai than LangChain accepts.

import { join } from "node:path";
import { command } from "../../../scripts/command.ts";
import { countsOf } from "../../../scripts/counts.ts";
import { type Answer, type EngineName, engineNames, engines } from "../../core/protocol/pairs/wires.ts";
import { startSluice } from "../../harness/sluice.ts";
import type { Edition, Ran, Suite } from "../edition.ts";
import { watched, withinMachine } from "../traffic.ts";
import { type PythonPackages, pythonFor } from "../virtual-environment.ts";
import { frameworks } from "./run.ts";

const plain: Answer = { reasoning: "", text: "Hello there", calls: [], end: "stop" };

/** The error of each protocol's engine for an input that is too long. */
const said: Record<EngineName, { type: string; message: string; code?: string }> = {
  chat: { type: "exceed_context_size_error", message: "request (5000 tokens) is too much" },
  messages: { type: "invalid_request_error", message: "prompt is too long: 5000 tokens > 4000 maximum" },
  responses: {
    type: "invalid_request_error",
    code: "context_length_exceeded",
    message: "You passed 5000 input tokens",
  },
};

const litellm: PythonPackages = {
  requirements: join(import.meta.dir, "requirements-litellm.txt"),
  // `litellm.responses` imports the package mcp.
  meant: ["litellm[mcp]", "openai", "mcp"],
  folder: "litellm-python",
};

export const litellmSuite: Suite = (edition) => ranBy("overflow_litellm.py", litellm, edition);
export const langchainSuite: Suite = (edition) => ranBy("langchain_script.py", frameworks, edition);

async function ranBy(script: string, packages: PythonPackages, edition: Edition): Promise<Ran> {
  const { python, versions } = await pythonFor(packages, edition);
  const engine = startEngine();
  const service = await startSluice({ config: configTo(`http://127.0.0.1:${engine.port}`) });
  const watch = watched({ url: service.url });
  const counts = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(watch.asked.length) });
  try {
    await service.json("org", "create", "narrow", "--plan", "pro");
    const limited = ["key", "create", "--org", "narrow", "--name", "minute", "--limit", "tokens_per_minute=100"];
    const environment = {
      SLUICE_URL: watch.url,
      SLUICE_KEY: service.key,
      SLUICE_LIMITED_KEY: (await service.json<{ key: string }>(...limited)).key,
      REQUESTS_URL: counts.url.href,
      // Keeps LiteLLM from downloading its list of the prices of all models.
      LITELLM_LOCAL_MODEL_COST_MAP: "True",
    };
    const words = [python, join(import.meta.dir, script)];
    const { code, output } = await withinMachine((trapped) =>
      command(words, { limit_ms: 5 * 60_000, environment: { ...environment, ...trapped } }),
    );
    return { counts: countsOf(output, code), versions };
  } finally {
    counts.stop(true);
    watch.stop();
    await service.stop();
    engine.stop(true);
  }
}

/**
 * A fake engine of three protocols, each at a path of its own, for which every input is too long: its model `refuses`
 * responds with an error status, its model `breaks` sends the error in the middle of the response.
 */
function startEngine() {
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const name = new URL(request.url).pathname.split("/")[1] as EngineName;
      const { model } = (await request.json()) as { model: string };
      const error = said[name];
      if (model === "refuses") return Response.json({ type: "error", error }, { status: 400 });
      return new Response(engines[name].broken(plain, error), { headers: { "content-type": "text/event-stream" } });
    },
  });
}

/**
 * The configuration with two models for each protocol, at paths of this URL: `acme/chat-refuses`, `acme/chat-breaks`,
 * and so on.
 */
function configTo(url: string): string {
  const upstreams = engineNames.map(
    (name) => `  ${name}: { url: "${url}/${name}/v1", protocol: ${engines[name].protocol} }`,
  );
  const models = engineNames.flatMap((name) =>
    ["refuses", "breaks"].map(
      (model) => `
  - id: acme/${name}-${model}
    created: 1790000000
    context_window: 4096
    max_output_tokens: 256
    capabilities: []
    prices: { input: 0.1, cached_input: 0.01, cache_write: 0.125, output: 0.4 }
    routes: [{ upstream: ${name}, model: ${model} }]`,
    ),
  );
  return `upstreams:\n${upstreams.join("\n")}\nmetering: { currency: USD }\nmodels:${models.join("")}\nplans: { pro: {} }\n`;
}

/**
 * The paths of other APIs that this service does not serve, and what it lacks: all paths of the SDKs of OpenAI and
 * Anthropic, and those of Azure, Gemini, Vertex, Bedrock, Ollama, Cohere and the engines themselves. Each refusal names
 * the nearest operation in the protocol that the client speaks. docs/protocols.md, Paths that are not served, sums them up. Pure.
 */

/** A path of another API, which this service does not serve. */
export interface UnservedPath {
  /** The missing feature, which completes "this service …". */
  lack: string;
  /** A sentence that names what to use instead. Absent: there is nothing similar. */
  nearest?: string;
  /** Whether clients of this API can read errors only in the form of Anthropic's Messages. */
  onlyMessages: boolean;
}

interface Row extends Omit<UnservedPath, "onlyMessages"> {
  /** The path without `/v1`. `{id}` is any part of a path; `/…` at the end is any path below it. */
  path: string;
}

interface UnservedApi {
  name: string;
  /** Set if clients of this API can read errors only in the form of Anthropic's Messages. */
  onlyMessages?: true;
  rows: readonly Row[];
}

const embedded = "Send the texts as 'input' to '/v1/embeddings'.";
const inChat = "Send the prompt as a message to '/v1/chat/completions'.";
const eachBy = (path: string) => `Send each request by itself to '${path}'.`;
const textStreams = "'/v1/responses' streams text, also over a WebSocket.";
const continued = "Continue a conversation at '/v1/responses' with 'previous_response_id'.";
const byOperators = "Operators administer it with the command 'sluice' or in its console.";
const usage = "'/v1/service/usage' reports what your organization has used.";
const models = "'/v1/models' lists the models.";
const spoken =
  "It speaks chat completions at '/v1/chat/completions', Messages at '/v1/messages' and Responses at '/v1/responses'.";
const fileInRequest = "Send the content of a file in the request itself.";
const counts = "'/v1/responses/input_tokens' and '/v1/messages/count_tokens' count the tokens of a request.";

const ofProtocol = (name: string, paths: readonly string[]): Row[] =>
  paths.map((path) => ({ path, lack: `does not speak the protocol of ${name}`, nearest: spoken }));

/** The paths that are not served, by the API to which they belong. The first row that matches a path is used. */
export const unservedApis: readonly UnservedApi[] = [
  {
    name: "Azure",
    rows: [
      {
        path: "/openai/deployments/{id}/chat/completions",
        lack: "has no deployments",
        nearest: "Use a client of OpenAI with a base URL that ends with '/v1', and name the model in 'model'.",
      },
      { path: "/openai/deployments/…", lack: "has no deployments" },
    ],
  },
  {
    name: "OpenAI and Anthropic",
    rows: [
      { path: "/agents/…", lack: "runs no agents" },
      { path: "/files/…", lack: "keeps no files", nearest: fileInRequest },
      { path: "/skills/…", lack: "keeps no skills" },
      { path: "/vaults/…", lack: "keeps no vaults" },
    ],
  },
  {
    name: "Anthropic",
    onlyMessages: true,
    rows: [
      {
        path: "/complete",
        lack: "does not speak Anthropic's text completions",
        nearest: "Send the prompt as a message to '/v1/messages'.",
      },
      { path: "/compliance/…", lack: "has no compliance reviews" },
      { path: "/deployment_runs/…", lack: "deploys no agents" },
      { path: "/deployments/…", lack: "deploys no agents" },
      { path: "/dreams/…", lack: "has no dreams" },
      { path: "/environments/…", lack: "runs no environments" },
      { path: "/experimental/…", lack: "writes no prompts" },
      { path: "/memory_stores/…", lack: "keeps no memory stores" },
      { path: "/messages/batches/…", lack: "takes no batches", nearest: eachBy("/v1/messages") },
      { path: "/organizations/analytics/…", lack: "has no analytics", nearest: usage },
      { path: "/organizations/cost_report", lack: "has no cost report", nearest: usage },
      { path: "/organizations/usage_report/…", lack: "has no usage report of this form", nearest: usage },
      { path: "/organizations/…", lack: "is not administered through this API", nearest: byOperators },
      { path: "/sessions/…", lack: "runs no agents" },
      { path: "/tunnels/…", lack: "has no tunnels" },
      { path: "/user_profiles/…", lack: "keeps no user profiles" },
    ],
  },
  {
    name: "Vertex",
    rows: ofProtocol("Vertex", ["/projects/{id}/locations/…", "/v1beta1/…"]),
  },
  {
    name: "Gemini",
    rows: ofProtocol("Gemini", [
      "/models/{id}:batchEmbedContents",
      "/models/{id}:batchGenerateContent",
      "/models/{id}:countTokens",
      "/models/{id}:embedContent",
      "/models/{id}:generateContent",
      "/models/{id}:predict",
      "/models/{id}:predictLongRunning",
      "/models/{id}:streamGenerateContent",
      "/upload/…",
      "/v1alpha/…",
      "/v1beta/…",
    ]),
  },
  {
    name: "OpenAI",
    rows: [
      { path: "/assistants/…", lack: "has no assistants", nearest: "Send instructions and tools to '/v1/responses'." },
      { path: "/audio/speech", lack: "makes no speech" },
      { path: "/audio/transcriptions", lack: "transcribes no recordings" },
      { path: "/audio/translations", lack: "translates no recordings" },
      { path: "/audio/voice_consents/…", lack: "keeps no voices" },
      { path: "/audio/voices/…", lack: "keeps no voices" },
      { path: "/batches/…", lack: "takes no batches", nearest: eachBy("/v1/chat/completions' or '/v1/responses") },
      {
        path: "/chat/completions/chatcmpl-{id}",
        lack: "keeps no chat completions",
        nearest: "It keeps responses: '/v1/responses/{id}'.",
      },
      {
        path: "/chat/completions/{id}/messages",
        lack: "keeps no chat completions",
        nearest: "It keeps responses: '/v1/responses/{id}'.",
      },
      { path: "/chatkit/…", lack: "has no ChatKit" },
      { path: "/containers/…", lack: "runs no containers" },
      { path: "/content_provenance_checks", lack: "checks no provenance" },
      { path: "/conversations/…", lack: "keeps no conversations", nearest: continued },
      { path: "/decisions", lack: "answers no lists of questions", nearest: inChat },
      { path: "/edits", lack: "has no edits", nearest: inChat },
      { path: "/engines/…", lack: "has no engines by name", nearest: models },
      { path: "/evals/…", lack: "runs no evals" },
      { path: "/fine_tuning/…", lack: "trains no models" },
      { path: "/images/…", lack: "makes no images" },
      { path: "/live/…", lack: "has no live sessions", nearest: textStreams },
      { path: "/moderations", lack: "moderates nothing" },
      { path: "/organization/costs", lack: "has no cost report", nearest: usage },
      { path: "/organization/usage/…", lack: "has no usage report of this form", nearest: usage },
      { path: "/organization/…", lack: "is not administered through this API", nearest: byOperators },
      { path: "/projects/…", lack: "is not administered through this API", nearest: byOperators },
      { path: "/realtime/…", lack: "has no realtime sessions", nearest: textStreams },
      { path: "/safety/…", lack: "has no safety cases" },
      { path: "/threads/…", lack: "keeps no threads", nearest: continued },
      { path: "/uploads/…", lack: "keeps no files", nearest: fileInRequest },
      { path: "/vector_stores/…", lack: "has no vector stores" },
      { path: "/videos/…", lack: "makes no videos" },
      {
        path: "/webhook_endpoints/…",
        lack: "sends no webhooks",
        nearest: "Ask '/v1/responses/{id}' how far a background response is.",
      },
      { path: "/webhook_event_types", lack: "sends no webhooks" },
    ],
  },
  { name: "Bedrock", rows: ofProtocol("Bedrock", ["/model/{id}/…"]) },
  {
    name: "Ollama",
    rows: [
      ...ofProtocol("Ollama", ["/api/chat", "/api/generate"]),
      { path: "/api/tags", lack: "does not speak the protocol of Ollama", nearest: models },
      { path: "/api/show", lack: "does not speak the protocol of Ollama", nearest: "'/v1/models/{id}' shows a model." },
      { path: "/api/embed", lack: "does not speak the protocol of Ollama", nearest: embedded },
      { path: "/api/embeddings", lack: "does not speak the protocol of Ollama", nearest: embedded },
      ...["blobs/…", "copy", "create", "delete", "ps", "pull", "push"].map((name) => ({
        path: `/api/${name}`,
        lack: "does not administer engines for clients",
      })),
      { path: "/api/version", lack: "does not speak the protocol of Ollama" },
      { path: "/api/web_fetch", lack: "fetches no pages" },
      { path: "/api/web_search", lack: "searches no web" },
    ],
  },
  {
    name: "Cohere",
    rows: [
      ...ofProtocol("Cohere", ["/chat", "/generate", "/summarize", "/v2/chat"]),
      ...["/embed", "/embed-jobs/…", "/v2/embed"].map((path) => ({
        path,
        lack: "does not speak the protocol of Cohere",
        nearest: embedded,
      })),
      { path: "/check-api-key", lack: "does not speak the protocol of Cohere", nearest: models },
      { path: "/classify", lack: "classifies nothing" },
      { path: "/connectors/…", lack: "has no connectors" },
      { path: "/datasets/…", lack: "keeps no datasets" },
      { path: "/finetuning/…", lack: "trains no models" },
      ...["/detokenize", "/tokenize"].map((path) => ({ path, lack: "shows no tokens", nearest: counts })),
    ],
  },
  {
    name: "an engine itself",
    rows: [
      ...["/completion", "/infill"].map((path) => ({
        path,
        lack: "does not serve the paths of engines",
        nearest: "Send 'prompt', and 'suffix' if there is one, to '/v1/completions'.",
      })),
      { path: "/apply-template", lack: "shows no prompts" },
      { path: "/embedding", lack: "does not serve the paths of engines", nearest: embedded },
      ...["/health", "/ping"].map((path) => ({
        path,
        lack: "reports its health elsewhere",
        nearest: "'/livez' says whether the process is up, and '/readyz' whether it admits requests.",
      })),
      ...["/load_lora_adapter", "/props", "/slots", "/unload_lora_adapter"].map((path) => ({
        path,
        lack: "does not administer engines for clients",
      })),
      ...["/reranking", "/score"].map((path) => ({
        path,
        lack: "does not serve the paths of engines",
        nearest: "Send 'query' and 'documents' to '/v1/rerank'.",
      })),
      { path: "/pooling", lack: "does not serve the paths of engines", nearest: embedded },
      { path: "/version", lack: "does not tell its version to clients" },
    ],
  },
  {
    name: "its own operators",
    rows: [
      {
        path: "/management/…",
        lack: "is not administered on this port",
        nearest: "Operators reach it on the port that 'SLUICE_OPERATOR_PORT' names.",
      },
      {
        path: "/metrics",
        lack: "shows its metrics on another port",
        nearest: "It is the one that 'SLUICE_OPERATOR_PORT' names.",
      },
    ],
  },
];

const path_chars_max = 1024;

const matchers = unservedApis.flatMap(({ rows, onlyMessages = false }) =>
  rows.map((row) => ({ row: { ...row, onlyMessages }, fits: matcherOf(row) })),
);

/** The row of a requested path, with or without `/v1`. Null: the path belongs to no known API. */
export function unservedAt(path: string): UnservedPath | null {
  if (path.length > path_chars_max) return null;
  const bare = path
    .replaceAll(/\/{2,}/g, "/")
    .replace(/\/$/, "")
    .replace(base, "");
  return matchers.find(({ fits }) => fits.test(bare))?.row ?? null;
}

/**
 * Prefixes of an API's own paths: `/v1`, once or more, and those under which proxies and clouds serve OpenAI's paths.
 */
const base = /^(?:\/v1beta)?\/openai(?:\/v1)?(?=\/(?!deployments(?:\/|$)))|^(?!\/management\/).*\/v1(?=\/)/;

function matcherOf({ path }: Row): RegExp {
  const isTree = path.endsWith("/…");
  const around = (isTree ? path.slice(0, -"/…".length) : path).split("{id}");
  return new RegExp(`^${around.map(RegExp.escape).join("[^/]+")}${isTree ? "(?:/.*)?" : ""}$`);
}

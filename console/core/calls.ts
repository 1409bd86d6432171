/** An example request to a model of each kind, for the reader to copy. Pure. */
import { type Client, clients } from "./clients.ts";

interface Asked {
  base: string;
  model: string;
  kind: "chat" | "completion" | "embedding" | "rerank";
}

const clientsOfChat = ["curl", "OpenAI SDK, Python", "OpenAI SDK, TypeScript"];

/** The example calls of a model: for a chat model, in a shell and with two libraries; for any other, in a shell. */
export function callsOf({ base, model, kind }: Asked): Client[] {
  if (kind === "chat") {
    const all = clients({ base, model, isOffered: true, context_tokens: null, isPerson: false });
    return all.filter(({ name }) => clientsOfChat.includes(name));
  }
  const { path, body } = others[kind];
  return [
    {
      name: "curl",
      says: "in a shell",
      text: `curl ${base}${path} \\
  -H "authorization: Bearer $SLUICE_KEY" -H "content-type: application/json" \\
  -d '${JSON.stringify({ model, ...body })}'`,
    },
  ];
}

const others = {
  completion: { path: "/v1/completions", body: { prompt: "Once upon a time", max_tokens: 64 } },
  embedding: { path: "/v1/embeddings", body: { input: "Hello" } },
  rerank: {
    path: "/v1/rerank",
    body: { query: "Hello", documents: ["Hello, and welcome.", "The tide is out at noon."] },
  },
} as const;

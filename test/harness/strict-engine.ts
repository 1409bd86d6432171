/**
 * An engine that, like vLLM, lists one model and responds with 404 to any other model name, while the simulator accepts
 * all names. The simulator at this URL generates the responses.
 */

export function strictEngine(simulator: string, port = 0, name = "Qwen/Qwen3-32B") {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/v1/models") return Response.json({ object: "list", data: [{ id: name, owned_by: "vllm" }] });
      const body = await request.text();
      const { model } = JSON.parse(body || "{}") as { model?: string };
      const message = `The model \`${model}\` does not exist.`;
      if (model !== name)
        return Response.json({ error: { message, type: "NotFoundError", code: 404 } }, { status: 404 });
      return fetch(simulator.replace(/\/v1$/, pathname), { method: "POST", body, headers: request.headers });
    },
  });
  return { server, url: `http://127.0.0.1:${server.port}/v1` };
}

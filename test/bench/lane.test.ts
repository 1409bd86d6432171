/** The service can be run in a benchmark that others have made: bench/lanes/getbusbar, with a stand-in for Docker. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../harness/daemon.ts";
import { program } from "../harness/sluice.ts";

const manifest = join(import.meta.dir, "../../bench/lanes/getbusbar/gateway.sh");
const folder = mkdtempSync(join(tmpdir(), "sluice-lane-"));

/**
 * The stand-in for Docker: does what the manifest asks of Docker, with the program itself instead of a container;
 * "docker-pid" has the process id of the server.
 */
const docker = `#!/bin/bash
set -e
place=${folder}
case "$1" in
  image) exit 0 ;;
  run)
    shift
    : >"$place/environment"
    while [ $# -gt 0 ]; do
      case "$1" in
        -e) echo "export $2" >>"$place/environment"; shift ;;
        -v) echo "export SLUICE_CONFIG=\${2%%:*}" >>"$place/environment"; shift ;;
      esac
      shift
    done
    echo "export SLUICE_DATA_DIR=$place/data SLUICE_WARM_UP_MS=0" >>"$place/environment"
    . "$place/environment"
    cd "$place"
    ${program.join(" ")} serve >"$place/log" 2>&1 &
    echo $! >"$place/docker-pid" ;;
  exec)
    . "$place/environment"
    cd "$place"
    shift 3
    exec ${program.join(" ")} "$@" ;;
  rm) [ -f "$place/docker-pid" ] && kill "$(cat "$place/docker-pid")" && rm "$place/docker-pid" ;;
esac
`;

const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
const part = { type: "output_text", text: "hello", annotations: [] };
/** Answers of the benchmark's engine, by path: one for each dialect. */
const replies: Record<string, object> = {
  "/v1/chat/completions": {
    ...{ id: "c", object: "chat.completion", created: 1, model: "gpt-4o-mini" },
    choices: [{ index: 0, message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  },
  "/v1/messages": {
    ...{ id: "m", type: "message", role: "assistant", model: "gpt-4o-mini", stop_reason: "end_turn", usage },
    content: [{ type: "text", text: "hello" }],
  },
  "/v1/responses": {
    ...{ id: "r", object: "response", created_at: 1, status: "completed", model: "gpt-4o-mini", usage },
    output: [{ type: "message", id: "i", role: "assistant", status: "completed", content: [part] }],
  },
};
const asked: string[] = [];
const engine = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  fetch(request) {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    return Response.json(replies[pathname], { status: replies[pathname] ? 200 : 404 });
  },
});

beforeAll(() => {
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin/docker"), docker);
  chmodSync(join(folder, "bin/docker"), 0o755);
});
afterAll(async () => {
  await bash("gw_stop");
  await engine.stop(true);
  rmSync(folder, { recursive: true, force: true });
});

const port = await freePort();

/** Runs these commands in a shell that has sourced the manifest, as the benchmark's runner does. Returns the output. */
async function bash(words: string): Promise<string> {
  const child = Bun.spawn(["bash", "-c", `. ${manifest}; ${words}`], {
    env: {
      ...{ PATH: `${folder}/bin:${process.env.PATH}`, HOME: folder, GW_DIR: folder, CORES: "0", GW_PORT: `${port}` },
      MOCK_PORT: `${engine.port}`,
    },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  const [out, errors, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  if (code !== 0) throw new Error(`${words} ended with ${code}: ${errors}`);
  return out.trim();
}

test("it builds its configuration, starts, makes a key, and is asked in each dialect of engines", async () => {
  const key = await bash('gw_build && gw_launch && echo "$GW_AUTH"');
  const paths = await bash('echo "$GW_PATH"');
  const dialects = { openai: "/v1/chat/completions", "openai-responses": "/v1/responses", anthropic: "/v1/messages" };
  for (const [dialect, path] of Object.entries(dialects)) {
    const model = await bash(`gw_matrix_egress ${dialect} && echo "$GW_MODEL"`);
    const answer = await fetch(`http://127.0.0.1:${port}${paths}`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "hi" }], max_tokens: 16 }),
    });
    expect(answer.status).toBe(200);
    expect(await answer.text()).toContain("hello");
    expect(asked.at(-1)).toBe(path);
    // The request is governed: the key's organization has a plan, and the answer says what is left of it.
    expect(answer.headers.get("x-service-usage-source")).toBe("plan");
    expect(answer.headers.get("x-ratelimit-limit-requests")).toBe("1000000000");
  }
}, 60_000);

// llama.cpp's own server, with a model of random weights that model.py has just made. The server is compiled here from the
// sources in the PyPI package llama-cpp-python, unless one exists already: in TEST_LLAMA_SERVER, or on the PATH.

import { copyFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../harness/until.ts";
import { pythonWith, succeed } from "../virtual-environment.ts";

const folder = ".cache/clients/engine";
const sources_version = "0.3.36";
const compile_ms = 2 * 60 * 60_000;
const start_ms = 60_000;

/** The engine's name for its model, and the engine's key: canaries, which must appear nowhere. */
export const engineModel = "canary-engine-model-f32";
export const engineKey = "canary-engine-key-5e0a";

export interface Llama {
  /** The base URL, with `/v1`. */
  url: string;
  /** Whether the engine generates at this moment. */
  isBusy(): Promise<boolean>;
  /** The number of output tokens of all finished answers. */
  tokens(): Promise<number>;
  kill(): void;
  stop(): Promise<void>;
}

/** Makes the server and the model if they are missing. Returns their paths. */
export async function engineParts(): Promise<{ server: string; model: string }> {
  const python = await pythonWith(join(import.meta.dir, "requirements.txt"), "engine-python");
  mkdirSync(folder, { recursive: true });
  const model = join(folder, "random.gguf");
  await succeed([python, join(import.meta.dir, "model.py"), model], "The model could not be made");
  return { server: await llamaServer(python), model };
}

async function llamaServer(python: string): Promise<string> {
  const given = process.env.TEST_LLAMA_SERVER ?? Bun.which("llama-server");
  if (given) return given;
  const built = join(folder, `llama-server-${sources_version}`);
  if (existsSync(built)) return built;
  for (const tool of ["cmake", "c++", "make"]) {
    if (!Bun.which(tool))
      throw new Error(`To compile llama.cpp's server, ${tool} is needed. Or name one in TEST_LLAMA_SERVER.`);
  }
  console.error("compiling llama.cpp's server, once; on two cores it takes half an hour");
  const work = join(folder, "sources");
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const fetched = ["--no-deps", "--no-binary=llama-cpp-python", "-d", work, `llama-cpp-python==${sources_version}`];
  await succeed([python, "-m", "pip", "download", "-q", ...fetched], "pip could not fetch the sources of llama.cpp");
  const archive = join(work, `llama_cpp_python-${sources_version}.tar.gz`);
  await succeed(["tar", "xzf", archive, "-C", work], "The sources could not be unpacked");
  const tree = join(work, `llama_cpp_python-${sources_version}`, "vendor/llama.cpp");
  const build = join(work, "build");
  await succeed(["cmake", "-S", tree, "-B", build, ...options], "cmake could not prepare the sources");
  const compile = ["cmake", "--build", build, "--target", "llama-server", "--parallel", "2"];
  await succeed(["nice", ...compile], "llama.cpp's server could not be compiled", compile_ms);
  copyFileSync(join(build, "bin/llama-server"), built);
  rmSync(work, { recursive: true, force: true });
  return built;
}

/**
 * Options of the build: one file without libraries beside it, which runs on any machine like this one and fetches
 * nothing from a hub.
 */
const options = [
  "-DCMAKE_BUILD_TYPE=Release",
  "-DCMAKE_CXX_FLAGS_RELEASE=-O1",
  "-DBUILD_SHARED_LIBS=OFF",
  "-DLLAMA_BUILD_TESTS=OFF",
  "-DLLAMA_BUILD_EXAMPLES=OFF",
  "-DLLAMA_BUILD_APP=OFF",
  "-DLLAMA_BUILD_UI=OFF",
  "-DLLAMA_USE_PREBUILT_UI=OFF",
  "-DLLAMA_OPENSSL=OFF",
  "-DGGML_OPENMP=OFF",
  "-DGGML_NATIVE=OFF",
];

/** `template` is the name of a chat template in this folder. */
export async function startLlama(template: string, ...more: string[]): Promise<Llama> {
  const { LLAMA_SERVER: server, LLAMA_MODEL: model } = process.env;
  if (!server || !model) throw new Error("Start this by: npm run test:clients -- engine");
  const port = freePort();
  const words = ["-m", model, "--alias", engineModel, "--host", "127.0.0.1", "--port", `${port}`, "--offline"];
  const serving = ["-c", "32768", "-np", "2", "-t", "1", "--jinja", "--slots", "--metrics", "--api-key", engineKey];
  const child = Bun.spawn(
    [server, ...words, ...serving, "--chat-template-file", join(import.meta.dir, template), ...more],
    { stdin: "ignore", stdout: "ignore", stderr: "ignore" },
  );
  const root = `http://127.0.0.1:${port}`;
  const get = async (path: string) => {
    const response = await fetch(root + path, { headers: { authorization: `Bearer ${engineKey}` } });
    if (!response.ok) throw new Error(`the engine's ${path} answered ${response.status}`);
    return response;
  };
  const isUp = () =>
    get("/health").then(
      () => true,
      () => child.exitCode !== null,
    );
  await until(isUp, start_ms, "the engine to load its model");
  if (child.exitCode !== null) throw new Error(`the engine ended with ${child.exitCode} instead of serving`);
  return {
    url: `${root}/v1`,
    isBusy: async () =>
      ((await (await get("/slots")).json()) as { is_processing: boolean }[]).some((slot) => slot.is_processing),
    tokens: async () =>
      Number(/^llamacpp:tokens_predicted_total (\d+)/m.exec(await (await get("/metrics")).text())?.[1]),
    kill: () => child.kill("SIGKILL"),
    stop: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  return port;
}

// Does what each line of the Dockerfile and of compose.yaml says, without a container engine: the build stage in a folder
// of its own with nothing but bun and a bare Debian's programs on its PATH, the image as a folder that holds what is
// copied into it and a C library, run by its user, read-only, with a volume where the Dockerfile names one.
//
//   sh scripts/run deploy/replay.ts          (Linux, as root: it mounts and changes root)
//
// What this cannot show: that the base images exist and are those of a digest, what is in them (the list has what is
// added), that limits of memory and processes are kept, how an engine itself behaves, and the other profiles of
// compose.yaml: the balancer and the engines come from images that are not here.

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  cpSync,
  type Dirent,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import postgres from "postgres";
import { parse } from "yaml";
import { freePort } from "../test/harness/daemon.ts";
import { startPostgres, startRedis } from "../test/harness/services.ts";

interface Stage {
  name: string;
  root: string;
  workdir: string;
  environment: Record<string, string>;
  user: [number, number];
  volumes: string[];
  entrypoint: string[];
  command: string[];
  healthcheck: string[];
  labels: Record<string, string>;
}

interface Running {
  url: string;
  said(): string;
  healthcheck(): number;
  stop(): Promise<number>;
}

const start_ms = 30_000;
const running = new Set<Bun.Subprocess>();
const workplace = mkdtempSync("/tmp/sluice-replay-");
chmodSync(workplace, 0o755);

async function main(): Promise<void> {
  if (process.getuid?.() !== 0) throw new Error("replay needs root: it mounts and changes root");
  const began = performance.now();
  try {
    const image = build(readFileSync("Dockerfile", "utf8"));
    await alone(image);
    await composed(image);
    say(`all lines replayed in ${Math.round((performance.now() - began) / 1000)} s`);
  } finally {
    for (const child of running) child.kill("SIGKILL");
    rmSync(workplace, { recursive: true, force: true });
  }
}

function say(text: string): void {
  console.log(text);
}

function must(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}

/** Answers the last stage, its folder filled. */
function build(dockerfile: string): Stage {
  const context = contextFolder();
  const stages: Stage[] = [];
  /** Of arguments before the first stage, which only FROM sees. */
  const globals: Record<string, string> = {};
  for (const line of instructions(dockerfile)) {
    say(`> ${line}`);
    const word = line.split(" ", 1)[0]!;
    const rest = line.slice(word.length).trim();
    const stage = stages.at(-1)!;
    if (word === "ARG" && stages.length === 0) globals[rest.split("=", 1)[0]!] = rest.slice(rest.indexOf("=") + 1);
    else if (word === "FROM") stages.push(newStage(interpolated(rest, globals), stages.length));
    else if (word === "WORKDIR") enter(stage, rest);
    else if (word === "COPY") copy(stage, rest, stages, context);
    else if (word === "RUN") runLine(stage, rest);
    else if (word === "ENV") for (const pair of rest.split(/\s+/)) set(stage, pair);
    else if (word === "ARG") set(stage, rest);
    else if (word === "USER") stage.user = rest.split(":").map(Number) as [number, number];
    else if (word === "VOLUME") stage.volumes.push(rest);
    else if (word === "ENTRYPOINT") stage.entrypoint = JSON.parse(rest);
    else if (word === "CMD") stage.command = JSON.parse(rest);
    else if (word === "HEALTHCHECK") stage.healthcheck = JSON.parse(rest.slice(rest.indexOf("CMD") + 3));
    else if (word === "LABEL") label(stage, rest);
    else must(word === "EXPOSE", `no replay for ${word}`);
  }
  const image = stages.at(-1)!;
  list(image);
  addLibraries(image);
  return image;
}

function instructions(dockerfile: string): string[] {
  const lines = dockerfile.split("\n").filter((line) => line.trim() !== "" && !line.trim().startsWith("#"));
  return lines
    .join("\n")
    .replaceAll(/\\\n\s*/g, " ")
    .split("\n");
}

/** What `docker build .` would send: the files of the repository, less what .dockerignore names. */
function contextFolder(): string {
  const ignored = readFileSync(".dockerignore", "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const files = execFileSync("git", ["ls-files", "-co", "--exclude-standard"], { encoding: "utf8" }).trim().split("\n");
  const folder = join(workplace, "context");
  for (const file of files) {
    const top = file.split("/", 1)[0]!;
    if (ignored.some((pattern) => new Bun.Glob(pattern).match(top)) || !existsSync(file)) continue;
    cpSync(file, join(folder, file));
  }
  return folder;
}

function newStage(from: string, index: number): Stage {
  const [image = "", , name = `${index}`] = from.split(/\s+/);
  const root = join(workplace, `stage-${index}`);
  mkdirSync(root);
  const version = /^oven\/bun:([^\s@]+)/.exec(image)?.[1];
  if (version !== undefined) {
    const here = execFileSync("node_modules/.bin/bun", ["--version"], { encoding: "utf8" }).trim();
    must(version === here, `the Dockerfile says bun ${version}, package.json ${here}`);
  }
  const environment: Record<string, string> = index === 0 ? { PATH: bareTools(), HOME: join(workplace, "home") } : {};
  return {
    name,
    root,
    workdir: "/",
    environment,
    user: [0, 0],
    volumes: [],
    entrypoint: [],
    command: [],
    healthcheck: [],
    labels: {},
  };
}

/** bun, and the programs that every Debian has; no Node, no git, no compiler. */
function bareTools(): string {
  const folder = join(workplace, "tools");
  mkdirSync(folder);
  cpSync("node_modules/.bin/bun", join(folder, "bun"), { dereference: true });
  for (const name of ["coreutils", "dash", "grep", "sed", "tar", "findutils"]) {
    const files = execFileSync("dpkg", ["-L", name], { encoding: "utf8" }).split("\n");
    for (const file of files.filter((path) => /^(\/usr)?\/bin\/./.test(path)))
      symlinkSync(file, join(folder, basename(file)));
  }
  if (!existsSync(join(folder, "sh"))) symlinkSync("/bin/sh", join(folder, "sh"));
  return folder;
}

function set(stage: Stage, pair: string): void {
  const [name = "", ...value] = pair.split("=");
  stage.environment[name] = value.join("=");
}

function label(stage: Stage, rest: string): void {
  for (const [, name, value] of rest.matchAll(/([\w.]+)="([^"]*)"/g))
    stage.labels[name!] = value!.replaceAll(/\$(\w+)/g, (_, variable: string) => stage.environment[variable] ?? "");
}

function enter(stage: Stage, folder: string): void {
  stage.workdir = folder;
  mkdirSync(join(stage.root, folder), { recursive: true });
}

function copy(stage: Stage, rest: string, stages: Stage[], context: string): void {
  const words = rest.split(/\s+/);
  const flag = (name: string) => words.find((word) => word.startsWith(`--${name}=`))?.slice(name.length + 3);
  const paths = words.filter((word) => !word.startsWith("--"));
  const to = paths.pop()!;
  const from = flag("from") === undefined ? context : stages.find(({ name }) => name === flag("from"))!.root;
  const target = join(stage.root, to.startsWith("/") ? to : join(stage.workdir, to));
  for (const path of paths) {
    const source = join(from, path);
    const intoFolder = to.endsWith("/") && !statSync(source).isDirectory();
    cpSync(source, intoFolder ? join(target, basename(path)) : target, { recursive: true });
  }
  const owner = flag("chown")?.split(":").map(Number);
  if (owner) chownSync(target, owner[0]!, owner[1]!);
}

function runLine(stage: Stage, line: string): void {
  execFileSync("/bin/sh", ["-c", line], {
    cwd: join(stage.root, stage.workdir),
    env: stage.environment,
    stdio: "inherit",
  });
}

/** What the image adds to its base, and its labels. */
function list(image: Stage): void {
  const files = (readdirSync(image.root, { recursive: true, withFileTypes: true }) as Dirent[])
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  say("the image adds to its base:");
  for (const file of files)
    say(`  ${(statSync(file).size / 1e6).toFixed(2).padStart(8)} MB  ${file.slice(image.root.length)}`);
  for (const [name, value] of Object.entries(image.labels)) say(`  ${name}=${value}`);
  must(image.labels["org.opencontainers.image.title"] === "sluice", "the image has no title");
  must(!files.some((file) => /\/(sh|bash|busybox)$/.test(file)), "the image has a shell");
}

/** The loader and the libraries that the binary names: less than the base image has. */
function addLibraries(image: Stage): void {
  const listed = execFileSync("ldd", [join(image.root, image.entrypoint[0]!)], { encoding: "utf8" });
  for (const [library] of listed.matchAll(/\/\S+/g)) cpSync(library, join(image.root, library), { dereference: true });
  for (const folder of ["proc", "dev", "tmp", ...image.volumes])
    mkdirSync(join(image.root, folder), { recursive: true });
  const size = (statSync(join(image.root, image.entrypoint[0]!)).size / 1e6).toFixed(1);
  say(
    `the image: ${size} MB of program, and ${[...listed.matchAll(/\/\S+/g)].map(([path]) => basename(path)).join(" ")}`,
  );
}

/** `docker run` of the image: its user, its environment, a read-only root, its volumes. */
async function run(image: Stage, volume: string, environment: Record<string, string>): Promise<Running> {
  const port = await freePort();
  const variables = { ...image.environment, PORT: `${port}`, ...environment };
  const inside = (words: string[]) => [
    ...["--mount", "/bin/sh", "-euc", mounts, "sh", image.root, volume, image.volumes[0]!, "/usr/bin/env", "-i"],
    ...Object.entries(variables).map(([name, value]) => `${name}=${value}`),
    ...["/usr/bin/unshare", `--root=${image.root}`, `--wd=${image.workdir}`],
    ...[`--setgid=${image.user[1]}`, `--setuid=${image.user[0]}`, ...words],
  ];
  const child = Bun.spawn(["unshare", ...inside([...image.entrypoint, ...image.command])], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  running.add(child);
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) said += decoder.decode(chunk, { stream: true });
    })();
  }
  const healthcheck = () => Bun.spawnSync(["unshare", ...inside(image.healthcheck)], { timeout: 10_000 }).exitCode;
  const deadline = Date.now() + start_ms;
  while (!said.includes("serving on") || healthcheck() !== 0) {
    const ended = child.exitCode !== null;
    if (ended || Date.now() > deadline) child.kill("SIGKILL");
    must(!ended && Date.now() < deadline, `it did not become healthy (exit code ${child.exitCode}): ${said}`);
    await Bun.sleep(50);
  }
  return {
    url: `http://127.0.0.1:${port}`,
    said: () => said,
    healthcheck,
    async stop() {
      child.kill("SIGTERM");
      const limit = setTimeout(() => child.kill("SIGKILL"), 35_000);
      const code = await child.exited;
      clearTimeout(limit);
      running.delete(child);
      return code;
    },
  };
}

const mounts = `
root=$1; volume=$2; at=$3; shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$volume" "$root$at"
exec "$@"
`;

/** `docker run`: the embedded database in the volume, and once more on the same volume. */
async function alone(image: Stage): Promise<void> {
  const volume = join(workplace, "volume");
  cpSync(join(image.root, image.volumes[0]!), volume, { recursive: true });
  const { uid, gid } = statSync(join(image.root, image.volumes[0]!));
  chownSync(volume, uid, gid);
  must(uid === image.user[0] && gid === image.user[1], "the volume does not belong to the image's user");
  const first = await run(image, volume, {});
  must(!/slk_\w{8}/.test(first.said()), "a key stands in the container's log");
  const key = readFileSync(join(volume, "demo-key"), "utf8").trim();
  await answersModels(first.url, key);
  must((await first.stop()) === 0, "SIGTERM did not end it with 0");
  const second = await run(image, volume, {});
  await answersModels(second.url, key);
  must((await second.stop()) === 0, "SIGTERM did not end it with 0");
  say("alone: healthy, answers, ends with 0, and once more on the same volume");
}

/** compose.yaml's environment, with its Postgres and Redis where they are here. */
async function composed(image: Stage): Promise<void> {
  const compose = parse(readFileSync("compose.yaml", "utf8"), { merge: true });
  const password = "replayed";
  const given = { POSTGRES_PASSWORD: password, REDIS_PASSWORD: password };
  const [, ...words] = (compose.services.redis.command as string[]).map((word) => interpolated(word, given));
  const options = Object.fromEntries(words.flatMap((word, at) => (at % 2 === 0 ? [[word, words[at + 1]!]] : [])));
  const [database, redis] = await Promise.all([startPostgres(), startRedis(undefined, () => options)]);
  try {
    const sql = postgres(database.url, { max: 1 });
    await sql.unsafe(`create role sluice login password '${password}'`);
    await sql.unsafe("create database sluice owner sluice");
    await sql.end();
    const environment = Object.fromEntries(
      Object.entries(compose.services.sluice.environment as Record<string, string>).map(([name, value]) => [
        name,
        interpolated(value, given)
          .replace("postgres:5432", new URL(database.url).host)
          .replace("@redis:6379", `@${new URL(redis.url).host}`),
      ]),
    );
    for (const { source, target } of compose.services.sluice.configs as { source: string; target: string }[])
      writeFileSync(join(image.root, target), readFileSync(compose.configs[source].file));
    const volume = join(workplace, "second-volume");
    mkdirSync(volume);
    chownSync(volume, ...image.user);
    const running = await run(image, volume, environment);
    const verbose = await (await fetch(`${running.url}/readyz?verbose`)).text();
    must(/redis/i.test(verbose) && /database/i.test(verbose), `/readyz does not name both: ${verbose}`);
    must(!/does not answer/.test(verbose), `Redis does not take the password, or the database: ${verbose}`);
    must((await fetch(`${running.url}/v1/models`)).status === 401, "a request without a key was not refused");
    const { SLUICE_CONSOLE_PORT: consolePort } = environment;
    must((await fetch(`http://127.0.0.1:${consolePort}/session/ways`)).ok, "the console does not answer");
    must((await running.stop()) === 0, "SIGTERM did not end it with 0");
    say("composed: healthy on Postgres and Redis, ends with 0");
  } finally {
    await Promise.all([database.stop(), redis.stop()]);
  }
}

function interpolated(text: string, values: Record<string, string>): string {
  return text.replaceAll(/\$\{(\w+)(?::[-?]([^}]*))?\}/g, (_, name: string, otherwise: string) =>
    name in values ? values[name]! : (otherwise ?? ""),
  );
}

async function answersModels(url: string, key: string): Promise<void> {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  must(response.status === 200, `/v1/models answered ${response.status}: ${await response.text()}`);
}

await main();

// Starts a load balancer (Debian's haproxy or nginx, or Envoy from PyPI) with its configuration file from
// deploy/balancers, in which only the addresses are changed.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { debianProgram, type Program } from "../../test/harness/debian.ts";
import { until } from "../../test/harness/until.ts";
import { envoyProgram } from "./envoy.ts";

const root = join(import.meta.dir, "../..");

interface Kind {
  file: string;
  /** Finds the balancer's program, or downloads it. */
  program(): Promise<Program>;
  /** The program's arguments for this configuration file and folder. */
  words(file: string, folder: string): string[];
  /** Changes the text of the configuration file so that the balancer listens on this port. */
  listening(text: string, port: number): string;
  version: string;
}

export const kinds = {
  haproxy: {
    file: "haproxy.cfg",
    program: () => debianProgram("haproxy"),
    words: (file) => ["-db", "-f", file],
    listening: bound,
    version: "-v",
  },
  nginx: {
    file: "nginx.conf",
    program: () => debianProgram("nginx"),
    words: (file, folder) => ["-p", folder, "-c", file, "-g", "daemon off; pid pid;"],
    listening: (text, port) => bound(text, port).replace(/^http \{$/m, `http {\n${ownFolders.join(" ")}`),
    version: "-v",
  },
  envoy: {
    file: "envoy.yaml",
    program: envoyProgram,
    words: (file) => ["-c", file, "--log-level", "warn", "--use-dynamic-base-id", "--concurrency", "1"],
    listening: (text, port) =>
      text.replace("{ address: 0.0.0.0, port_value: 8080 }", `{ address: 127.0.0.1, port_value: ${port} }`),
    version: "--version",
  },
} as const satisfies Record<string, Kind>;

export type Name = keyof typeof kinds;

export function isName(word: string | undefined): word is Name {
  return word !== undefined && Object.hasOwn(kinds, word);
}

export interface Balancer {
  url: string;
  version: string;
  stop(): Promise<void>;
}

export async function startBalancer(name: Name, ports: number[]): Promise<Balancer> {
  const kind: Kind = kinds[name];
  const { path: program, env } = await kind.program();
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`));
  const port = await freePort();
  const file = join(folder, kind.file);
  writeFileSync(file, configuration(kind, port, ports));
  mkdirSync(join(folder, "logs"));
  const words = [program, ...kind.words(file, folder)];
  const child = Bun.spawn(words, { env, stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => child.exitCode !== null,
    );
  await until(answers, 20_000, `${name} to serve`);
  if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
  const version = Bun.spawnSync([program, kind.version], { env });
  return {
    url,
    version: `${version.stdout}${version.stderr}`.trim().split("\n", 1)[0]!,
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration({ file, listening }: Kind, port: number, ports: number[]): string {
  let text = listening(readFileSync(join(root, "deploy/balancers", file), "utf8"), port);
  if (!text.includes(`${port}`)) throw new Error(`${file} does not say where it listens`);
  for (const [index, node] of ports.entries()) {
    const name = `sluice-${index + 1}`;
    // The address of a node in the syntax of haproxy and nginx, and in that of Envoy.
    const places = [`${name}:8080`, `address: ${name}, port_value: 8080`];
    const place = places.find((each) => text.includes(each));
    if (!place) throw new Error(`${file} names no ${name}`);
    text = text.replaceAll(place, place.replace(name, "127.0.0.1").replace("8080", `${node}`));
  }
  return text;
}

function bound(text: string, port: number): string {
  return text.replace(/^(\s*(?:bind|listen)) :?8080/m, `$1 127.0.0.1:${port}`);
}

/** Settings of folders for nginx's temporary files, because Debian's default folders belong to an installed nginx. */
const ownFolders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((what) => `${what}_temp_path ${what};`);

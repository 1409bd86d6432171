// Debian's haproxy or nginx, with the file of deploy/balancers: only its addresses are changed.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../test/harness/daemon.ts";
import { libraryPath, unpackedTree } from "../../test/harness/debian.ts";
import { until } from "../../test/harness/until.ts";

const root = join(import.meta.dir, "../..");

export type Name = "haproxy" | "nginx";

export interface Balancer {
  url: string;
  version: string;
  stop(): Promise<void>;
}

export async function startBalancer(name: Name, ports: number[]): Promise<Balancer> {
  const tree = await unpackedTree(join(root, `.cache/debian-${name}`), {
    packages: [name],
    program: `usr/sbin/${name}`,
  });
  const env = { ...process.env, LD_LIBRARY_PATH: libraryPath(tree) };
  const program = join(tree, "usr/sbin", name);
  const folder = mkdtempSync(join(tmpdir(), `sluice-${name}-`));
  const port = await freePort();
  const file = join(folder, "configuration");
  writeFileSync(file, configuration(name, port, ports));
  mkdirSync(join(folder, "logs"));
  const words =
    name === "haproxy"
      ? [program, "-db", "-f", file]
      : [program, "-p", folder, "-c", file, "-g", "daemon off; pid pid;"];
  const child = Bun.spawn(words, { env, stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => child.exitCode !== null,
    );
  await until(answers, 20_000, `${name} to serve`);
  if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}`);
  const version = Bun.spawnSync([program, "-v"], { env });
  return {
    url,
    version: `${version.stdout}${version.stderr}`.split("\n", 1)[0]!,
    async stop() {
      child.kill("SIGTERM");
      await child.exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function configuration(name: Name, port: number, ports: number[]): string {
  let text = readFileSync(join(root, "deploy/balancers", name === "haproxy" ? "haproxy.cfg" : "nginx.conf"), "utf8");
  text = text.replace(/^(\s*(?:bind|listen)) :?8080/m, `$1 127.0.0.1:${port}`);
  // Debian's own folders for these belong to an installed nginx.
  const ownFolders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((what) => `${what}_temp_path ${what};`);
  text = text.replace(/^http \{$/m, `http {\n${ownFolders.join(" ")}`);
  for (const [index, node] of ports.entries()) {
    const address = `sluice-${index + 1}:8080`;
    if (!text.includes(address)) throw new Error(`the file names no ${address}`);
    text = text.replaceAll(address, `127.0.0.1:${node}`);
  }
  return text;
}

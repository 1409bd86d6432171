// The unit of systemd, compose.yaml and the balancers' files: what they say about Sluice is true of this version. `npm run
// rolling` runs haproxy's and nginx's files, and deploy/replay.ts the first of compose.yaml's ways to start.

import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { filled } from "../../src/config/settings/row.ts";
import { sections } from "../../src/config/settings/sections.ts";
import { variables } from "../../src/config/settings/variables.ts";
import { faultCatalogue } from "../../src/core/inference/fault.ts";
import { probes } from "../../src/core/operations/list.ts";
import { defaultTimeouts } from "../../src/core/upstream/target.ts";
import { connectionLimits } from "../../src/features/responses/websocket/connection.ts";
import { configured } from "../config/reading.ts";
import { pages } from "../docs/blocks.ts";

const root = join(import.meta.dir, "../..");
const textOf = (file: string) => readFileSync(join(root, file), "utf8");
const known = new Set(variables);
const unknown = (names: string[]) => names.filter((name) => !known.has(name));
/** The time after a drain: 2 s for the last frames of streams, and 10 s to settle while the database is away. */
const farewell_ms = 12_000;
const limits = filled(sections.limits.properties);
const { drain_ms } = limits;

function seconds(text: string, pattern: RegExp): number[] {
  const found = [...text.matchAll(pattern)].map(([, value]) => Number(value));
  expect(found).not.toBeEmpty();
  return found;
}

describe("systemd's unit", () => {
  const unit = textOf("deploy/systemd/sluice.service");
  test("sets variables that exist, from credentials that it loads", () => {
    const set = [...unit.matchAll(/^Environment=(\w+)=(\S+)$/gm)].map(([, name, value]) => ({ name, value }));
    expect(unknown(set.map(({ name }) => name!))).toEqual([]);
    const named = set.flatMap(({ value }) => /^%d\/(.+)$/.exec(value!)?.[1] ?? []).sort();
    const loaded = [...unit.matchAll(/^LoadCredential=([\w-]+):/gm)].map(([, name]) => name!).sort();
    expect(named).toEqual(loaded);
  });

  test("says where both ports listen", () => {
    for (const name of ["HOST", "SLUICE_OPERATOR_HOST"]) expect(unit).toMatch(new RegExp(`^Environment=${name}=`, "m"));
  });

  test("has its settings for commands in a shell, too, whose secrets are files that it loads", () => {
    const shell = textOf("deploy/systemd/shell.sh");
    const listens = [...unit.matchAll(/^Environment=(\w+=[^%\s]+)$/gm)].map(([, setting]) => setting!);
    expect(listens.length).toBeGreaterThan(3);
    expect(listens.filter((setting) => !shell.includes(` ${setting}`))).toEqual([]);
    const loaded = [...unit.matchAll(/^#?LoadCredential=[\w-]+:(\S+)$/gm)].map(([, path]) => path!);
    expect(loaded.filter((path) => !shell.includes(`_FILE=${path}`))).toEqual([]);
  });

  test("gives pg_dump and psql the database's URL in that shell, and `sluice` the file alone", () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-shell-"));
    mkdirSync(join(folder, "secrets"));
    writeFileSync(join(folder, "secrets/database-url"), "postgres://sluice:x@127.0.0.1/sluice\n");
    const shell = textOf("deploy/systemd/shell.sh").replaceAll("/etc/sluice", folder);
    const command = `${shell}\necho "$DATABASE_URL"; env | grep ^DATABASE_URL`;
    const { stdout } = Bun.spawnSync(["sh", "-ec", command], { env: { PATH: process.env.PATH ?? "" } });
    expect(stdout.toString().split("\n")).toEqual([
      "postgres://sluice:x@127.0.0.1/sluice",
      `DATABASE_URL_FILE=${folder}/secrets/database-url`,
      "",
    ]);
    rmSync(folder, { recursive: true });
  });

  test("keeps its state behind a link, which no page says to copy", () => {
    expect(unit).toMatch(/^DynamicUser=yes\nStateDirectory=sluice$/m);
    const lines = pages.flatMap((page) => textOf(page).split("\n"));
    const copied = lines.filter((line) =>
      /\b(copy|tar|cp|rsync)\b[^.:]*\/var\/lib\/|\/var\/lib\/[^.:]*\bcopy\b/.test(line),
    );
    expect(copied).not.toBeEmpty();
    expect(copied.filter((line) => !line.includes("-C /var/lib/private "))).toEqual([]);
  });

  test("is edited where no package puts it, and a page leaves no umask behind", () => {
    const lines = pages.flatMap((page) => textOf(page).split("\n"));
    const edits = lines.filter((line) => /remove the (two )?lines of (Redis|`database-url`)/.test(line));
    expect(edits).toHaveLength(2);
    expect(edits.filter((line) => !line.includes("systemctl edit --full sluice"))).toEqual([]);
    expect(lines.filter((line) => /\bumask \d/.test(line) && !/^\( *umask/.test(line.trim()))).toEqual([]);
  });

  test("reads credentials at its start alone, and every page that says SIGHUP for a secret says so", () => {
    expect(unit).toContain("not at a reload: after a new one, systemctl restart sluice.");
    expect(textOf("docs/deploying.md")).toContain("not what `LoadCredential` copied");
    for (const page of ["docs/operating.md", "docs/tasks.md"])
      for (const line of textOf(page).split("\n"))
        if (/its file, then SIGHUP|files in place/.test(line)) expect(line).toMatch(/systemd.*restart/);
  });

  test("waits for the drain", () => {
    const [stop_s = 0] = seconds(unit, /^TimeoutStopSec=(\d+)$/gm);
    expect(stop_s * 1000).toBeGreaterThan(drain_ms + farewell_ms);
  });
});

describe("compose.yaml", () => {
  const compose = parse(textOf("compose.yaml"), { merge: true });
  const nodes = ["sluice", "embedded", "sluice-1", "sluice-2", "sluice-3"];

  test("sets variables that exist", () => {
    for (const name of nodes) {
      const { environment, configs } = compose.services[name];
      const file = textOf(compose.configs[configs[0].source].file);
      expect(unknown(Object.keys(environment)).filter((one) => !file.includes(`\${${one}}`))).toEqual([]);
    }
  });

  /** The console's variables; the others take their values from `.env`. */
  const ofConsole = ({ SLUICE_CONSOLE_HOST, SLUICE_CONSOLE_PORT, CONSOLE_URL }: Record<string, string>) => ({
    SLUICE_CONSOLE_HOST,
    SLUICE_CONSOLE_PORT,
    CONSOLE_URL: CONSOLE_URL!.replaceAll(/\$\{\w+:-(\d+)\}/g, "$1"),
  });

  test("gives a container with a read-only root only files: Compose copies anything else into it, and is refused", () => {
    const services = Object.entries<{ read_only?: boolean; configs?: { source: string }[] }>(compose.services);
    for (const [name, { read_only, configs = [] }] of services)
      for (const { source } of read_only ? configs : []) {
        const given = compose.configs[source];
        expect([name, Object.keys(given)]).toEqual([name, ["file"]]);
        expect(existsSync(join(root, given.file))).toBeTrue();
      }
    expect(services.some(([, { read_only, configs }]) => read_only && configs)).toBeTrue();
  });

  test("has a console for its own machine: listening, published there alone, at the address that its file says", () => {
    for (const name of ["sluice", "embedded"]) {
      const { environment, ports, configs } = compose.services[name];
      const published = (ports as string[]).map((port) => port.replaceAll(/\$\{\w+:-(\d+)\}/g, "$1"));
      expect(published.every((port) => port.startsWith("127.0.0.1:"))).toBeTrue();
      expect(configs).toEqual([{ source: "console", target: "/etc/sluice/sluice.yaml" }]);
      const { server, identity } = configured(textOf(compose.configs.console.file), ofConsole(environment));
      const { port } = new URL(identity!.consoleUrl!);
      expect([server.console, published]).toEqual([
        { host: "0.0.0.0", port: 8081 },
        expect.arrayContaining([`127.0.0.1:${port}:8081`]),
      ]);
    }
  });

  test("starts only Sluice and its stores, unless another way is asked for", () => {
    const standard = Object.entries<{ profiles?: string[] }>(compose.services).filter(([, { profiles }]) => !profiles);
    expect(standard.map(([name]) => name).sort()).toEqual(["postgres", "redis", "sluice"]);
  });

  test("has a file for three nodes that Sluice takes, and waits for their drain", () => {
    const { limits } = configured(textOf(compose.configs.fleet.file));
    for (const name of nodes) {
      const grace_ms = Number.parseInt(compose.services[name].stop_grace_period, 10) * 1000;
      expect(grace_ms).toBeGreaterThan(limits.drain_delay_ms + limits.drain_ms + farewell_ms);
    }
  });

  test("has the nodes that the balancer's file names", () => {
    const named = [...textOf("deploy/balancers/haproxy.cfg").matchAll(/^ +server \S+ ([\w-]+):8080$/gm)];
    expect(named.map(([, name]) => name!)).toEqual(
      Object.keys(compose.services).filter((name) => /-\d$/.test(name) && name.startsWith("sluice")),
    );
  });
});

describe("the balancers", () => {
  const haproxy = textOf("deploy/balancers/haproxy.cfg");
  const nginx = textOf("deploy/balancers/nginx.conf");
  const envoy = textOf("deploy/balancers/envoy.yaml");
  const { total_ms } = defaultTimeouts;

  test("let go of a node's idle connection before the node does", () => {
    const idle = [
      ...seconds(haproxy, /timeout http-keep-alive (\d+)s/g),
      ...seconds(haproxy, /pool-purge-delay (\d+)s/g),
      ...seconds(envoy, / idle_timeout: (\d+)s/g),
    ];
    for (const idle_s of idle) expect(idle_s * 1000).toBeLessThan(limits.idle_ms);
    // nginx keeps no connections to nodes except WebSockets.
    expect(nginx).toMatch(/map \$http_upgrade \$connection_to_node \{\s+default upgrade;\s+"" close;/);
    expect(nginx).toContain("proxy_set_header Connection $connection_to_node;");
    expect(nginx).not.toMatch(/^\s*keepalive \d/m);
  });

  test("let WebSockets through, and do not cut them before they end by themselves", () => {
    expect(nginx).toContain("proxy_set_header Upgrade $http_upgrade;");
    expect(envoy).toContain("upgrade_configs: [{ upgrade_type: websocket }]");
    for (const tunnel_s of seconds(haproxy, /timeout tunnel (\d+)s/g))
      expect(tunnel_s * 1000).toBeGreaterThan(connectionLimits.age_ms);
  });

  test("wait as long for an answer as Sluice does for an engine", () => {
    const waits = [
      ...seconds(haproxy, /timeout (?:client|server) (\d+)s/g),
      ...seconds(nginx, /proxy_read_timeout (\d+)s/g),
      ...seconds(envoy, /stream_idle_timeout: (\d+)s/g),
    ];
    for (const wait_s of waits) expect(wait_s * 1000).toBeGreaterThan(total_ms);
    expect(parse(envoy).static_resources.listeners).toHaveLength(1);
    expect(envoy).toMatch(/ timeout: 0s\n/);
  });

  test("take the largest body, pass on what comes, and send nothing twice", () => {
    const [mebibytes = 0] = seconds(nginx, /client_max_body_size (\d+)m;/g);
    expect(mebibytes * 2 ** 20).toBe(limits.body_bytes_max);
    expect(nginx).toContain("proxy_buffering off;");
    expect(nginx).toContain("proxy_request_buffering off;");
    expect(nginx).toContain("proxy_next_upstream error timeout;");
    expect(haproxy).toMatch(/^ +retry-on conn-failure$/m);
    expect(envoy).toContain("retry_policy: { retry_on: connect-failure, num_retries: 2 }");
  });

  test("have room for thousands of streams at once, in each of the files", () => {
    const [streams_max = 0] = seconds(haproxy, /^ +maxconn (\d+)$/gm);
    expect(streams_max).toBeGreaterThanOrEqual(8000);
    // Envoy's own bounds are 1,024 for all nodes together, and 3 requests that are tried elsewhere.
    const [cluster] = parse(envoy).static_resources.clusters;
    const [bounds] = cluster.circuit_breakers?.thresholds ?? [];
    for (const bound of ["max_connections", "max_pending_requests", "max_requests"])
      expect([bound, bounds?.[bound]]).toEqual([bound, streams_max]);
    expect(bounds.max_retries).toBeGreaterThan(3);
    // nginx's own bounds are one worker with 512 connections, of which a request takes two.
    for (const text of [nginx, textOf("deploy/balancers/nginx-tls.conf")]) {
      expect(text).toMatch(/^worker_processes auto;$/m);
      const [files_max = 0] = seconds(text, /^worker_rlimit_nofile (\d+);$/gm);
      const [connections_max = 0] = seconds(text, /^ +worker_connections (\d+);$/gm);
      expect(connections_max).toBeGreaterThanOrEqual(streams_max);
      expect(files_max).toBeGreaterThan(2 * connections_max);
    }
  });

  test("say in JSON what they refuse by themselves, and after 503 when to come again", () => {
    const errors = [
      ...haproxy.matchAll(/^ +http-error status (\d+) content-type application\/json string '(.*)'(.*)$/gm),
    ];
    expect(errors.map(([, status, , header]) => [status, header])).toEqual([
      ["502", ""],
      ["503", " hdr retry-after 5"],
      ["504", ""],
    ]);
    for (const [, , body] of errors) {
      // Clients of Messages read `type`, those of OpenAI the code.
      const { type, error } = JSON.parse(body!);
      expect(type).toBe("error");
      expect(Object.keys(faultCatalogue)).toContain(error.code);
      expect(error.message).toMatch(/^[A-Z].*\.$/);
    }
  });

  test("ask whether a node is ready", () => {
    const paths = [/httpchk GET (\S+)/.exec(haproxy)?.[1], /http_health_check: \{ path: (\S+) \}/.exec(envoy)?.[1]];
    expect(paths).toEqual(["/readyz", "/readyz"]);
    expect(probes.map(({ path }) => path)).toContain("/readyz");
    // The checks have 3 s: on a busy machine all nodes answer late, and it would help nobody if a balancer left all of
    // them out.
    expect([...seconds(haproxy, /timeout check (\d+)s/g), ...seconds(envoy, /- timeout: (\d+)s/g)]).toEqual([3, 3]);
  });
});

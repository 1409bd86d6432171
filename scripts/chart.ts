// Renders and lints the Helm chart, validates its output against the schemas of Kubernetes, and writes
// deploy/kubernetes. `npm run chart`; with `-- --check` it writes nothing, and fails if the files would change.
// Requires Go and Python, with which it installs helm and kubernetes-validate into .cache. .ci/run has neither Go nor
// these; there, test/deploy/chart.test.ts checks as much as is possible without them.

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { parse, parseAllDocuments } from "yaml";
import { chartSum, manifests } from "../deploy/chart.ts";
import { command } from "./command.ts";

const root = join(import.meta.dir, "..");
const chart = join(root, "deploy/helm");
const cache = join(root, ".cache/chart");
const helmVersion = "v3.19.0";
const validatorVersion = "1.37.0";
/**
 * The versions of Kubernetes to validate against, from the oldest that Chart.yaml accepts to the newest that the
 * validator knows.
 */
const kubernetesVersions = ["1.29", "1.34", "1.37"];
const kinds_max = 20;

async function main(): Promise<void> {
  const isCheck = process.argv.includes("--check");
  const helm = await helmProgram();
  const validator = await validatorProgram();
  await run([helm, "lint", "--strict", "--quiet", chart]);
  const folder = mkdtempSync(join(tmpdir(), "sluice-chart-"));
  try {
    for (const [index, values] of variants(folder).entries()) {
      const file = join(folder, `${index}.yaml`);
      writeFileSync(file, await rendered(helm, values));
      for (const version of kubernetesVersions) await validated(validator, version, file);
    }
    await keepsNumbers(helm, folder);
    await refusesNoSecret(helm);
    await fitsClusters(helm);
    for (const { file, values, isOf } of manifests) {
      const text = await rendered(helm, values);
      const path = join(root, "deploy/kubernetes", file);
      const written = headed(partsOf(text).filter((part) => isOf(parse(part).kind)));
      if (!isCheck) writeFileSync(path, written);
      else if (readFileSync(path, "utf8") !== written) throw new Error(`${path} differs from the chart: npm run chart`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(`the chart renders, and Kubernetes ${kubernetesVersions.join(", ")} would take what comes out`);
}

/**
 * Values of a cluster with IPv6 alone that chooses the pods' user, for streams of an hour and for people who sign in
 * without the console.
 */
const elsewhere = [
  "listen=::",
  "user=null",
  "autoscaling.enabled=true",
  "config.limits.drain_ms=3600000",
  "config.identity.service_url=https://sluice.example",
  "config.identity.issuers[0].issuer=https://login.example",
  "env[0].name=REDIS_CA_FILE",
  "env[0].value=/run/secrets/sluice/redis-ca",
];

/** Values for the chart that render other lines than the standard values. */
function variants(folder: string): string[][] {
  const egress = join(folder, "egress.yaml");
  writeFileSync(
    egress,
    `trustedProxies: [10.0.0.0/8, "::1"]
clientAddressHeader: x-real-ip
operatorNames: [sluice-operator.monitoring.svc]
imagePullSecrets: [{ name: registry }]
nodeSelector: { kubernetes.io/arch: amd64 }
tolerations: [{ key: dedicated, operator: Exists }]
podAnnotations: { example: "yes" }
priorityClassName: high
affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: Exists }] }] } } }
service: { type: LoadBalancer, annotations: { example: "yes" } }
serviceMonitor: { labels: { release: prometheus } }
networkPolicy:
  from: [{ ipBlock: { cidr: 10.0.0.0/8 } }]
  egress: [{ to: [{ ipBlock: { cidr: 10.1.0.0/16 } }], ports: [{ protocol: TCP, port: 5432 }] }]
`,
  );
  return [
    [],
    ["autoscaling.enabled=true", "serviceMonitor.enabled=true", "image.digest=sha256:0", `file=${egress}`],
    ["migration.enabled=false", "podDisruptionBudget.enabled=false", "networkPolicy.enabled=false", "config=null"],
    ["secrets.redis=false", "migration.secretName=sluice-owner"],
    ["console.enabled=true", "console.type=LoadBalancer", "console.annotations.example=yes"],
    elsewhere,
  ];
}

async function rendered(helm: string, values: string[]): Promise<string> {
  const flags = values.flatMap((value) =>
    value.startsWith("file=") ? ["--values", value.slice("file=".length)] : ["--set", value],
  );
  // A helm that was built by `go install` does not know its default version of Kubernetes.
  return run([helm, "template", "sluice", chart, "--kube-version", "1.34.0", ...flags]);
}

async function validated(validator: string, version: string, file: string): Promise<void> {
  const output = await run([validator, "-k", version, "--strict", file]);
  const passed = [...output.matchAll(/passed for resource (\S+)/g)].length;
  const unknown = [...output.matchAll(/Couldn't find schema for kind (\S+)/g)].map(([, kind]) => kind);
  const expected = partsOf(readFileSync(file, "utf8")).length;
  // The resource ServiceMonitor belongs to the Prometheus operator, so Kubernetes has no schema for it.
  if (passed + unknown.length !== expected || unknown.some((kind) => kind !== "ServiceMonitor") || expected > kinds_max)
    throw new Error(`of ${expected} resources ${passed} passed against ${version}:\n${output}`);
}

/** Checks that the chart renders large limits of plans exactly, because Helm parses every number as a float. */
async function keepsNumbers(helm: string, folder: string): Promise<void> {
  const config = parse(readFileSync(join(root, "sluice.example.yaml"), "utf8"));
  const file = join(folder, "config.json");
  writeFileSync(file, JSON.stringify({ config }));
  const text = await rendered(helm, [`file=${file}`]);
  const found = parseAllDocuments(text)
    .map((document) => document.toJS())
    .find((one) => one?.kind === "ConfigMap");
  const grace = /terminationGracePeriodSeconds: (\d+)/.exec(text)?.[1];
  if (!isDeepStrictEqual(parse(found.data["sluice.yaml"]), config)) throw new Error("the chart changes sluice.yaml");
  if (Number(grace) < 42) throw new Error(`a grace period of ${grace} s for 5 s of delay and 25 s of drain`);
}

async function refusesNoSecret(helm: string): Promise<void> {
  const { code } = await command([helm, "template", "sluice", chart, "--set", "secrets.name="], {
    limit_ms: 60_000,
    quiet: true,
  });
  if (code === 0) throw new Error("the chart renders without a Secret");
}

/** Checks what Kubernetes' schemas do not say of the pods and their number. */
async function fitsClusters(helm: string): Promise<void> {
  const text = await rendered(helm, elsewhere);
  if (/0\.0\.0\.0|65532/.test(text)) throw new Error("a pod listens on IPv4, or has a user of its own");
  // Kubernetes refuses more, in the middle of the release.
  if (!text.includes("periodSeconds: 1800 }]")) throw new Error("the autoscaler takes longer than half an hour");
  for (const name of ["SLUICE_SECRET_KEY_FILE", "REDIS_CA_FILE"])
    if (!text.includes(`name: ${name}`)) throw new Error(`the pods lack ${name}`);
  for (const values of [[], ["config.identity.service_url=https://sluice.example"]])
    if ((await rendered(helm, values)).includes("SLUICE_SECRET_KEY_FILE"))
      throw new Error("a key that nobody asked for");
  const console = await rendered(helm, ["console.enabled=true", "listen=::"]);
  if (/0\.0\.0\.0/.test(console)) throw new Error("the console listens on IPv4");
  for (const values of ["console.enabled=true", "secrets.secretKey=true"])
    if (!(await rendered(helm, [values])).includes("SLUICE_SECRET_KEY_FILE")) throw new Error(`no key with ${values}`);
}

/** Helm's output, cut where one resource ends. */
function partsOf(text: string): string[] {
  return text.split(/^---\n/m).filter((part) => part.replaceAll(/^#.*$/gm, "").trim() !== "");
}

function headed(parts: string[]): string {
  const head = `# Written by scripts/chart.ts from deploy/helm: change that, and run \`npm run chart\`. Chart ${chartSum()}\n`;
  const clean = parts.map((part) =>
    part
      .replaceAll(/^# Source: .*\n/gm, "")
      .replaceAll(/[ \t]+$/gm, "")
      .replaceAll(/^ *app.kubernetes.io\/managed-by: Helm\n/gm, ""),
  );
  return `${head}${clean.map((part) => `---\n${part}`).join("")}`;
}

async function helmProgram(): Promise<string> {
  const program = join(cache, "helm");
  if (!existsSync(program)) {
    const go = Bun.which("go") ?? "/usr/local/go/bin/go";
    await run([go, "install", `helm.sh/helm/v3/cmd/helm@${helmVersion}`], { GOBIN: cache });
  }
  return program;
}

async function validatorProgram(): Promise<string> {
  const venv = join(cache, "venv");
  const program = join(venv, "bin/kubernetes-validate");
  if (!existsSync(program)) {
    await run(["python3", "-m", "venv", venv]);
    await run([join(venv, "bin/pip"), "install", "--quiet", `kubernetes-validate==${validatorVersion}`]);
  }
  return program;
}

async function run(words: string[], environment: Record<string, string> = {}): Promise<string> {
  const outcome = await command(words, { limit_ms: 15 * 60_000, quiet: true, environment });
  if (outcome.code !== 0) throw new Error(`${words.join(" ")} answered ${outcome.code}:\n${outcome.output}`);
  return outcome.output;
}

await main();

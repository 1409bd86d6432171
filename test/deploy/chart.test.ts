// The manifests of deploy/kubernetes, which `npm run chart` renders from the Helm chart and holds to Kubernetes' schemas:
// what they say of Sluice is true of this version.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse, parseAllDocuments } from "yaml";
import { chartSum, manifests } from "../../deploy/chart.ts";
import packageJson from "../../package.json";
import type { Configuration } from "../../src/config/configuration.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { variables } from "../../src/config/settings/variables.ts";
import { probes } from "../../src/core/operations/list.ts";
import { table } from "../../src/features/telemetry/table.ts";
import { metricsOperations } from "../../src/node/operations.ts";

const folder = join(import.meta.dir, "../../deploy");
const textOf = (file: string) => readFileSync(join(folder, file), "utf8");
// biome-ignore lint/suspicious/noExplicitAny: Kubernetes' own shapes, which npm run chart checks.
type Resource = any;
const resources: Resource[] = manifests.flatMap(({ file }) =>
  parseAllDocuments(textOf(`kubernetes/${file}`))
    .map((document) => document.toJS())
    .filter((resource) => resource !== null),
);
const one = (kind: string, name = "sluice"): Resource => {
  const found = resources.filter((resource) => resource.kind === kind && resource.metadata.name === name);
  expect(found).toHaveLength(1);
  return found[0];
};
const pod = one("Deployment").spec.template;
const [container] = pod.spec.containers;
const job = one("Job", "sluice-migrate").spec.template;
const environmentOf = (of: Resource): Record<string, string> =>
  Object.fromEntries(of.env.map(({ name, value }: { name: string; value: string }) => [name, value]));
const environment = environmentOf(container);
const settings = parse(textOf("helm/values.yaml"));

/** The configuration as Sluice reads it in a pod with these variables. */
function configurationOf(env: Record<string, string>): Configuration {
  const files: Record<string, string> = {
    "/etc/sluice/sluice.yaml": one("ConfigMap").data["sluice.yaml"],
    "/run/secrets/sluice/database-url": "postgres://sluice@postgres/sluice\n",
    "/run/secrets/sluice/redis-url": "redis://redis:6379\n",
  };
  const readFile = (path: string) => (path in files ? new TextEncoder().encode(files[path]) : null);
  const loaded = loadConfiguration({ env, readFile });
  if (loaded instanceof Error) throw loaded;
  return loaded;
}

describe("the chart", () => {
  test("is the one that the plain manifests were made from", () => {
    for (const { file } of manifests) expect(textOf(`kubernetes/${file}`)).toContain(`Chart ${chartSum()}\n`);
  });

  test("is of this version", () => {
    const { version, appVersion } = parse(textOf("helm/Chart.yaml"));
    expect({ version, appVersion }).toEqual({ version: packageJson.version, appVersion: packageJson.version });
    // The image has this version too, in its label.
    const dockerfile = readFileSync(join(folder, "../Dockerfile"), "utf8");
    expect(dockerfile).toContain(`org.opencontainers.image.version="${packageJson.version}"`);
  });

  test("sets only variables that exist, in every template", () => {
    const templates = [...new Bun.Glob("*.yaml").scanSync(join(folder, "helm/templates"))];
    const named = templates.flatMap((file) =>
      [...textOf(`helm/templates/${file}`).matchAll(/\{ name: ([A-Z_]+), value:/g)].map(([, name]) => name!),
    );
    expect(named).toContain("SLUICE_TRUSTED_PROXIES");
    expect(named.filter((name) => !variables.includes(name))).toEqual([]);
  });
});

describe("the chart's values", () => {
  const templates = [...new Bun.Glob("*").scanSync(join(folder, "helm/templates"))]
    .map((file) => textOf(`helm/templates/${file}`))
    .join("\n");

  test("say where the pods listen, and as whom they run: some clusters have IPv6 alone, or choose the user", () => {
    expect({ listen: settings.listen, user: settings.user }).toEqual({ listen: "0.0.0.0", user: 65532 });
    expect(templates).not.toMatch(/0\.0\.0\.0|65532/);
  });

  test("give the pods their secret key with issuers too, and further variables", () => {
    expect(templates).toContain('.Values.secrets.secretKey .Values.console.enabled (get $identity "issuers")');
    expect(templates).toContain("with .Values.env");
  });

  test("let the autoscaler take pods away as seldom as Kubernetes allows, also with long drains", () => {
    expect(templates).toMatch(/type: Pods, value: 1, periodSeconds: \{\{ min \(.*\) 1800 \}\}/);
  });

  test("allow a migration the time that the documents' commands wait for it", () => {
    const commands = [...new Bun.Glob("*.md").scanSync(join(folder, "../docs"))].flatMap((page) =>
      [...readFileSync(join(folder, "../docs", page), "utf8").matchAll(/helm (?:install|upgrade)\b[^`\n]*/g)].map(
        ([command]) => command,
      ),
    );
    expect(commands.length).toBeGreaterThanOrEqual(3);
    for (const command of commands) {
      const [, minutes] = /--timeout (\d+)m\b/.exec(command) ?? [];
      expect([command, Number(minutes) * 60 > settings.migration.deadlineSeconds]).toEqual([command, true]);
    }
  });
});

describe("a pod", () => {
  test("starts with that environment, those files and those secrets, without a remark", () => {
    const { server, storage, notices } = configurationOf(environment);
    expect(notices).toEqual([]);
    expect(storage).toMatchObject({
      databaseUrl: "postgres://sluice@postgres/sluice",
      redisUrl: "redis://redis:6379",
    });
    expect(server).toMatchObject({ host: "0.0.0.0", migrates: false, operator: { host: "0.0.0.0" } });
  });

  test("listens on the ports that it names, and the services, probes and policies lead there", () => {
    const { server } = configurationOf(environment);
    const ports = Object.fromEntries(
      container.ports.map(({ name, containerPort }: { name: string; containerPort: number }) => [name, containerPort]),
    );
    expect(ports).toEqual({ http: server.port, operator: server.operator!.port });
    expect(one("Service").spec.ports[0].targetPort).toBe("http");
    expect(one("Service", "sluice-operator").spec.ports[0]).toMatchObject({ name: "operator", targetPort: "operator" });
    const [api, metrics] = one("NetworkPolicy").spec.ingress;
    expect([api.ports[0].port, api.from, metrics.ports[0].port]).toEqual(["http", undefined, "operator"]);
    expect(metrics.from).not.toBeEmpty();
    const known = probes.map(({ path }) => path);
    for (const probe of ["startupProbe", "readinessProbe", "livenessProbe"]) {
      expect(container[probe].httpGet.port).toBe("http");
      expect(known).toContain(container[probe].httpGet.path);
    }
    expect(container.readinessProbe.httpGet.path).toBe("/readyz");
    expect(container.livenessProbe.httpGet.path).toBe("/livez");
  });

  test("may take the whole drain before it is killed, and fails its probe before it refuses anybody", () => {
    const { limits } = configurationOf(environment);
    const { drain_delay_ms, drain_ms } = limits;
    // 12 s: 2 s for the last frames of streams, and 10 s to settle while the database is away.
    expect(pod.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(drain_delay_ms + drain_ms + 12_000);
    const { periodSeconds, failureThreshold } = container.readinessProbe;
    expect(drain_delay_ms).toBeGreaterThan(periodSeconds * failureThreshold * 1000);
  });

  test("has a root that cannot be written, no rights, and no service links", () => {
    for (const { spec } of [pod, job]) {
      const [{ securityContext }] = spec.containers;
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      });
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65532 });
      expect(spec.enableServiceLinks).toBe(false);
      expect(spec.automountServiceAccountToken).toBe(false);
    }
    const written = container.volumeMounts.filter(({ readOnly }: Resource) => !readOnly);
    expect(written.map(({ mountPath }: Resource) => mountPath)).toEqual(["/tmp"]);
  });

  test("is whom every selector means, and the migration is not", () => {
    const selectors = [
      one("Deployment").spec.selector.matchLabels,
      one("Service").spec.selector,
      one("Service", "sluice-operator").spec.selector,
      one("PodDisruptionBudget").spec.selector.matchLabels,
      one("NetworkPolicy").spec.podSelector.matchLabels,
      ...pod.spec.topologySpreadConstraints.map(({ labelSelector }: Resource) => labelSelector.matchLabels),
    ];
    for (const selector of selectors) {
      expect(pod.metadata.labels).toMatchObject(selector);
      expect(job.metadata.labels).not.toMatchObject(selector);
    }
  });
});

describe("beside the pods", () => {
  test("the Job migrates with the database that it names", () => {
    const [migrate] = job.spec.containers;
    expect(migrate.args).toEqual(["migrate"]);
    expect(migrate.image).toBe(container.image);
    expect(configurationOf(environmentOf(migrate)).storage.databaseUrl).toBe("postgres://sluice@postgres/sluice");
  });

  test("the monitor finds the metrics under the name that the alerts expect", () => {
    const { spec } = one("ServiceMonitor");
    const { labels } = one("Service", "sluice-operator").metadata;
    expect(labels).toMatchObject(spec.selector.matchLabels);
    expect(labels[spec.jobLabel]).toBe("sluice");
    expect(one("Service").metadata.labels).not.toMatchObject(spec.selector.matchLabels);
    expect(spec.endpoints[0]).toMatchObject({ port: "operator", path: metricsOperations[0]!.path });
  });

  test("the number of pods follows a gauge that exists", () => {
    const [{ pods }] = one("HorizontalPodAutoscaler").spec.metrics;
    expect(table).toHaveProperty(pods.metric.name);
    expect((table as Record<string, { type: string }>)[pods.metric.name]!.type).toBe("gauge");
    expect(settings.autoscaling.minReplicas).toBeGreaterThan(settings.podDisruptionBudget.maxUnavailable);
  });
});

// What belongs together: the Helm chart, and the plain manifests that scripts/chart.ts renders from it.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const chart = join(import.meta.dir, "helm");

/** Which manifests are written, with which values beside the chart's own, and of which kinds. */
export const manifests: { file: string; values: string[]; isOf(kind: string): boolean }[] = [
  { file: "sluice.yaml", values: [], isOf: () => true },
  {
    file: "monitoring.yaml",
    values: ["autoscaling.enabled=true", "serviceMonitor.enabled=true"],
    isOf: (kind) => ["HorizontalPodAutoscaler", "ServiceMonitor"].includes(kind),
  },
];

/** Of all files of the chart: it stands in the manifests, so that one sees when they are older. */
export function chartSum(): string {
  const hasher = new Bun.CryptoHasher("sha256");
  for (const path of (readdirSync(chart, { recursive: true, withFileTypes: true }) as import("node:fs").Dirent[])
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()) {
    hasher.update(`${path.slice(chart.length)}\n${readFileSync(path, "utf8").replaceAll("\r\n", "\n")}`);
  }
  return hasher.digest("hex").slice(0, 16);
}

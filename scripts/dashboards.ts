// Writes the Grafana dashboards of deploy/grafana, from deploy/dashboards.ts: `bun scripts/dashboards.ts`.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { dashboards, grafanaJson } from "../deploy/dashboards.ts";

for (const [name, panels] of Object.entries(dashboards)) {
  writeFileSync(join(import.meta.dir, "..", "deploy/grafana", `${name}.json`), grafanaJson(name, panels));
}

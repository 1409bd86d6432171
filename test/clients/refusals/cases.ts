// The refusals that each client must be able to read: for each, the URL, the request, and the expected error.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { model, startService } from "../../harness/engine.ts";
import { startPostgres } from "../../harness/services.ts";
import { until } from "../../harness/until.ts";

/** One case, in the JSON format that the scripts for Node and Python read. */
export interface Case {
  reason: string;
  size_mib: number;
  url: string;
  method: string;
  headers: Record<string, string>;
  /** The path of a file with the body of the request. */
  body: string;
  status: number;
  code: string;
}

export interface Refusing {
  cases: Case[];
  stop(): Promise<void>;
}

const mib = 1024 * 1024;
const sizes_mib = [5, 20, 40];
const chat = "/v1/chat/completions";

/**
 * Starts three services: one that accepts bodies of all `sizes_mib`, one that accepts only small bodies, and one whose
 * database is down.
 */
export async function refusing(): Promise<Refusing> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-refusals-"));
  const roomy = await startService({
    limits: `{ body_bytes_max: ${64 * mib} }`,
    plans: { none: "{ tokens_per_minute: 1 }" },
  });
  const narrow = await startService({ limits: `{ body_bytes_max: ${mib} }` });
  const orphan = await withoutDatabase();
  const keyOf = async (slug: string, plan: string, ...scopes: string[]) => {
    await roomy.json("org", "create", slug, "--plan", plan);
    return (await roomy.json<{ key: string }>("key", "create", "--org", slug, "--name", "test", ...scopes)).key;
  };
  const reader = await keyOf("reader", "unlimited", "--scopes", "models:read");
  const poor = await keyOf("poor", "none");

  const cases = sizes_mib.flatMap((size_mib): Case[] => {
    const body = join(folder, `${size_mib}.json`);
    writeFileSync(body, imageOf(size_mib));
    const one = (status: number, code: string, url: string, key: string | null, method = "POST"): Case => ({
      ...{ reason: `${status} ${code}`, size_mib, url, method, body, status, code },
      headers: { "content-type": "application/json", ...(key === null ? {} : { authorization: `Bearer ${key}` }) },
    });
    return [
      one(401, "missing_api_key", roomy.url + chat, null),
      one(403, "missing_scope", roomy.url + chat, reader),
      one(404, "route_not_found", `${roomy.url}/chat/completions`, roomy.key),
      one(405, "method_not_allowed", roomy.url + chat, roomy.key, "PUT"),
      one(413, "request_too_large", narrow.url + chat, narrow.key),
      one(429, "usage_limit_reached", roomy.url + chat, poor),
      one(503, "storage_unavailable", orphan.url + chat, orphan.key),
    ];
  });
  return {
    cases,
    async stop() {
      await Promise.all([roomy.stop(), narrow.stop(), orphan.stop()]);
      rmSync(folder, { recursive: true });
    },
  };
}

async function withoutDatabase() {
  const postgres = await startPostgres();
  const service = await startService({ sluice: { store: "pglite", env: { DATABASE_URL: postgres.url } } });
  await postgres.stop();
  await until(async () => (await service.fetch("/v1/models")).status === 503, 10_000, "the database to be missed");
  return service;
}

/** The body of a request with an image: many bytes, but few tokens. */
function imageOf(size_mib: number): string {
  const url = `data:image/png;base64,${"A".repeat(size_mib * mib)}`;
  return JSON.stringify({ model, messages: [{ role: "user", content: [{ type: "image_url", image_url: { url } }] }] });
}

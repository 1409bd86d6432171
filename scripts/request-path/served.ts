/**
 * A node of the core alone with one key, on the embedded database, in front of an engine that responds with a few
 * tokens.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../../db/migrate.ts";
import { authenticator } from "../../src/core/auth/authenticate.ts";
import { newKey } from "../../src/core/auth/credential.ts";
import { standings } from "../../src/core/auth/standing.ts";
import { listen } from "../../src/core/http/listen.ts";
import { coreOperations } from "../../src/core/operations/list.ts";
import type { Credential } from "../../src/core/store/directory.ts";
import { uuidOf } from "../../src/core/store/ids.ts";
import { mount, type NodeDependencies } from "../../src/node/app.ts";
import { embeddedDatabase } from "../../src/stores/postgres/embedded.ts";
import { coreNode, modelId } from "../../test/core/core-node.ts";
import { until } from "../../test/harness/until.ts";

export interface ServedCore {
  /** Sends a streamed chat request with the key, and reads the response. */
  ask(): Promise<void>;
  /** Resolves when all requests are settled. */
  idle(): Promise<void>;
  stop(): Promise<void>;
}

/** Callbacks for each request. The engine continues when they have returned. */
interface Moments {
  /** Called when the request is admitted, just before the engine sends the first byte of its response. */
  engineFirst(): Promise<void>;
  /** Called when the client has the first byte of the response body. */
  clientFirst(): Promise<void>;
}

export async function serveCore({ engineFirst, clientFirst }: Moments): Promise<ServedCore> {
  let begun = Promise.withResolvers<void>();
  const folder = mkdtempSync(join(tmpdir(), "sluice-request-path-"));
  const db = await embeddedDatabase(join(folder, "data"));
  await migrate(db);
  const organizationId = `org_${Bun.randomUUIDv7().replaceAll("-", "")}`;
  await db.query(
    "insert into organization (id, slug, name, plan, anchor_at) values ($1, 'acme', 'Acme', 'metered', $2)",
    [uuidOf(organizationId, "org_"), new Date("2026-01-01T00:00:00Z")],
  );
  const engine = engineOf(
    async () => {
      await until(() => node.holds() > 0 && node.granted.length > asked, 5_000, "the grant");
      asked = node.granted.length;
      await engineFirst();
    },
    () => begun.promise,
  );
  let asked = 0;
  const key = newKey(crypto.getRandomValues(new Uint8Array(64)));
  const credential = credentialOf(organizationId);
  const authentication = authenticator({
    directory: { credential: async () => credential(), touch: async () => {} },
    now_ms: () => performance.now(),
  });
  const standing = standings({ authenticator: authentication, ends: true });
  const node = coreNode({ store: { db }, organizationId, engineUrl: `http://127.0.0.1:${engine.port}/v1` });
  const dependencies = { ...node.dependencies, authenticate: authentication.authenticate, standings: standing };
  const listening = listen(mount(dependencies as object as NodeDependencies, coreOperations) as never, {
    ...{ host: "127.0.0.1", port: 0, idle_ms: 60_000 },
  });
  return {
    async ask() {
      const response = await fetch(`${listening.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
        body: JSON.stringify({ model: modelId, stream: true, messages: [{ role: "user", content: "three words" }] }),
      });
      const reader = response.body!.getReader();
      const { value } = await reader.read();
      await clientFirst();
      begun.resolve();
      let text = new TextDecoder().decode(value);
      for (let part = await reader.read(); !part.done; part = await reader.read())
        text += new TextDecoder().decode(part.value);
      begun = Promise.withResolvers();
      if (response.status !== 200 || !text.includes("[DONE]")) throw new Error(`answered ${response.status}: ${text}`);
    },
    idle: () => until(() => node.holds() === 0, 5_000, "the requests to be settled"),
    async stop() {
      await listening.stop();
      await node.stop();
      await authentication.stop();
      standing.stop();
      await engine.stop(true);
      await db.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function engineOf(first: () => Promise<void>, goOn: () => Promise<void>) {
  const event = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({
      ...{ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "writer" },
      choices: [{ index: 0, delta, finish_reason }],
    })}\n\n`;
  const usage = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
  const report = `data: ${JSON.stringify({ id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "writer", choices: [], usage })}\n\n`;
  return Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1" },
    async fetch(request) {
      await request.text();
      const bytes = async function* () {
        await first();
        yield event({ role: "assistant", content: "one" });
        await goOn();
        yield event({ content: " two three" });
        yield `${event({}, "stop")}${report}data: [DONE]\n\n`;
      };
      return new Response(bytes as never, { headers: { "content-type": "text/event-stream" } });
    },
  });
}

function credentialOf(organizationId: string): () => Credential {
  const createdAt = new Date();
  const organization = {
    ...{ id: organizationId, slug: "acme", name: "Acme", status: "active", plan: "metered", createdAt, closedAt: null },
    ...{ extraUsage: { enabled: false, capNanos: null }, keyLifetimeMaxDays: null, keyUnusedMaxDays: null },
    keepsContent: true,
  } as Credential["organization"];
  const key = {
    ...{ id: `key_${Bun.randomUUIDv7().replaceAll("-", "")}`, name: "measured", models: null, allowFrom: null },
    ...{ expiresAt: null, revokedAt: null, lastUsedAt: createdAt, scopes: ["inference:create" as const] },
  };
  return () => ({
    ...{ key, organization, person: null, rates: [], readAt: new Date() },
    secret: { createdAt, expiresAt: null, revokedAt: null },
    ends: { lifetimeAt: null, unusedAt: null },
  });
}

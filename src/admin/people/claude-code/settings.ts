/**
 * GET /managed/settings: the settings that Claude Code reads at a sign-in, if the operator has turned them on. They
 * name the models that the caller may use, and a model for Claude Code's small tasks, for which it would otherwise name
 * a model of Anthropic.
 */
import { json } from "../../../core/http/json.ts";
import type { Model } from "../../../core/inference/model.ts";
import type { Operation } from "../../../core/operations/operation.ts";
import { authorize } from "../../../core/operations/serve-operation.ts";
import { notThere, unlisted } from "../../../core/operations/unlisted.ts";
import {
  type AllowedModels,
  type Catalog,
  type CatalogModel,
  isAllowed,
  servedNames,
} from "../../../core/routing/catalog.ts";
import type { IdentityParts } from "../../../features/identity/identity.ts";

export function managedSettings({ identity }: Pick<IdentityParts, "identity">): Operation {
  return unlisted({
    id: "getManagedSettings",
    method: "get",
    path: "/managed/settings",
    faultShape: "messages",
    async handle(dependencies, call) {
      const { key } = await authorize(dependencies, call, "any");
      const models = modelsFor(key, dependencies.catalog(), Date.now());
      if (!identity()?.claudeCodeSettings || models.length === 0) throw notThere(call);
      const settings = settingsFor(models);
      const checksum = `sha256:${Bun.SHA256.hash(canonical(settings), "hex")}`;
      const headers = { etag: `"${checksum}"`, "cache-control": "no-store" };
      if (call.request.headers.get("if-none-match") === headers.etag)
        return new Response(null, { status: 304, headers });
      return json(200, { uuid: key.id, checksum, settings }, headers);
    },
  });
}

/** The models that Claude Code can work with and the key may use. `now_ms`: milliseconds since the epoch. */
export function modelsFor(key: AllowedModels, catalog: Catalog, now_ms: number): CatalogModel[] {
  const served = servedNames(catalog, now_ms).filter(({ name, model }) => name === model.id);
  return served.map(({ model }) => model).filter((model) => model.capabilities.has("tools") && isAllowed(model, key));
}

function settingsFor(models: readonly Model[]) {
  const { id, contextTokens } = models[0]!;
  return {
    model: id,
    availableModels: models.map((model) => model.id),
    env: {
      ANTHROPIC_DEFAULT_HAIKU_MODEL: id,
      // Claude Code has only one setting of the context size, for all models.
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(contextTokens),
    },
  };
}

/**
 * The value as JSON with sorted keys at every level and without spaces, the form over which Claude Code computes its
 * checksum.
 */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${members.map(([name, one]) => `${JSON.stringify(name)}:${canonical(one)}`).join(",")}}`;
}

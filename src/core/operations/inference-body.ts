/** The body of an inference request: read within bounds, parsed once, and checked against its contract. */
import type { TSchema } from "typebox";
import { BodyItems } from "../body/body-items.ts";
import { type JsonBody, readJson } from "../body/read.ts";
import type { Call } from "../http/call.ts";
import { reserve, takesTurns } from "../http/shed.ts";
import type { Model } from "../inference/model.ts";
import type { UncheckedItems } from "../protocol/contract.ts";
import type { Catalog, CatalogModel } from "../routing/catalog.ts";
import { answeringModelOrNull, retirementHeadersOf } from "../routing/model-names.ts";
import { keyHeader } from "./idempotency.ts";
import type { RequestBody } from "./operation.ts";

/** How the body of an operation is checked. */
interface Checking<Wire> {
  /**
   * Checks the body. Throws the Fault of the first offence. `extraParams`: fields that the model accepts beyond the
   * contract. `unchecked`: the items of lists that have to be checked, null for all. `bounds`: those of the model.
   */
  validate(
    body: unknown,
    extraParams: readonly string[],
    unchecked: UncheckedItems | null,
    bounds: Model["bounds"],
  ): Wire;
  /** The members of the body whose items are looked up among those of earlier requests; none by default. */
  repeated?: readonly string[];
  /** Whether a body asks for a stream. By default: if its `stream` is true. */
  isStreamed?(body: { stream?: unknown }): boolean;
}

export function inferenceBody<Wire>(
  schema: TSchema,
  { validate, repeated = [], isStreamed = ({ stream }) => stream === true }: Checking<Wire>,
): RequestBody<JsonBody<Wire>> {
  return {
    schema,
    async read(dependencies, call, organization) {
      const pause = takesTurns(dependencies, call);
      const hold = (held: number) => reserve(dependencies, call, held);
      const isKeyed = call.request.headers.has(keyHeader);
      const { items: cache } = dependencies.bounds;
      const isLookedUp = repeated.length > 0 && organization.keepsContent && cache.bytes_max > 0;
      const items = isLookedUp ? new BodyItems(cache, `${organization.id} ${call.route}`, repeated) : null;
      const reading = { pause, hasDigest: isKeyed, items };
      const read = await readJson(call.request, dependencies.limits, hold, reading);
      const { value, bytes, own, digest } = read;
      if (own) call.begins(own);
      const catalog = dependencies.catalog();
      noteRequested(call, catalog, value, isStreamed);
      await pause(bytes);
      const { extraParams = none, bounds } = answeringNamed(catalog, modelIn(value)) ?? {};
      const wire = validate(value, extraParams, read.unseen, bounds);
      read.keepItems();
      await pause(bytes);
      return { value: wire, bytes, own, digest };
    },
  };
}

/**
 * Records the requested model, if it exists, and whether a stream is asked for, before the body is checked, because the
 * receipt of a refusal has them. Also sets the headers of a model that is to be retired.
 */
function noteRequested(
  call: Call,
  catalog: Catalog,
  body: unknown,
  isStreamed: (body: { stream?: unknown }) => boolean,
): void {
  if (typeof body !== "object" || body === null) return;
  const { model } = body as { model?: unknown };
  const stream = isStreamed(body);
  if (typeof model === "string") call.announces(retirementHeadersOf(catalog, model));
  const answering = answeringNamed(catalog, model);
  call.requested(answering ? { model: answering.id, stream } : { stream });
}

const none: readonly string[] = [];

function modelIn(body: unknown): unknown {
  return (body as { model?: unknown } | null)?.model;
}

function answeringNamed(catalog: Catalog, name: unknown): CatalogModel | null {
  return typeof name === "string" ? answeringModelOrNull(catalog, name, Date.now()) : null;
}

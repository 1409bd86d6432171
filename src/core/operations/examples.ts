import type { ModelKind } from "../inference/model.ts";
import { type Example, type ExampleRequest, jsonType } from "./operation.ts";

interface GetOptions extends Omit<ExampleRequest, "path" | "body"> {
  contentType?: string;
}

/** An example of a GET. `path` may be a function of a model's id. */
export function getExample(
  name: string,
  summary: string,
  path: string | ((modelId: string) => string),
  { contentType = jsonType, ...more }: GetOptions = {},
): Example {
  const pathFor = typeof path === "string" ? () => path : path;
  return { name, summary, needs: [], request: (id) => ({ path: pathFor(id), ...more }), status: 200, contentType };
}

/**
 * Returns a function that makes examples of a POST to `path`. The `model` in their bodies is one that has what the
 * example needs.
 */
export function exampleAt(path: string, kind: ModelKind = "chat") {
  return (
    name: string,
    summary: string,
    needs: Example["needs"],
    body: Record<string, unknown>,
    contentType = jsonType,
  ): Example => ({
    name,
    summary,
    needs,
    kind,
    request: (model) => ({ path, body: { model, ...body } }),
    status: 200,
    contentType,
  });
}

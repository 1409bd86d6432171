/** The parts of the examples of the inference operations. */
import type { Example } from "../operation.ts";

export const jsonType = "application/json";

/** An example of a POST to `path`: a model that has what is needed is put into its body. */
export function exampleAt(path: string) {
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
    request: (model) => ({ path, body: { model, ...body } }),
    status: 200,
    contentType,
  });
}

export const weather = {
  name: "get_weather",
  description: "The weather at a place.",
  schema: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  question: { role: "user", content: "What is the weather in Oslo?" },
};

/** One red pixel, a PNG in base64. */
export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

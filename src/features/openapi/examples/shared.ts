/** Pieces that the examples of several protocols share. */
export const weather = {
  name: "get_weather",
  description: "The weather at a place.",
  schema: { type: "object", properties: { place: { type: "string" } }, required: ["place"] },
  question: { role: "user", content: "What is the weather in Oslo?" },
};

export const citySchema = {
  type: "object",
  properties: { city: { type: "string" }, country: { type: "string" } },
  required: ["city", "country"],
  additionalProperties: false,
};

/** A PNG of one red pixel, in base64. */
export const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

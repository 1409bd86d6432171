/** The header `idempotency-key`, with which a request can be repeated without being carried out twice. */
import Type from "typebox";

export const keyHeader = "idempotency-key";

/** The declaration of the header `idempotency-key`, for operations that take it. */
export const keyHeaders = Type.Object({
  [keyHeader]: Type.Optional(
    Type.String({
      pattern: "^[ -~]{1,255}$",
      description:
        "Makes a repeat harmless: within a day, the same request with the same key gets the same answer, which is charged once. While the first request runs, the repeat joins it. The request runs on if its client leaves.",
      "x-must-be": "1 to 255 printable ASCII characters",
    }),
  ),
});

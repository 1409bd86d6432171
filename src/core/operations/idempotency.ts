/** The header `idempotency-key`, with which a request can be repeated without being carried out twice. */
import Type from "typebox";
import type { Call } from "../http/call.ts";
import { Fault } from "../inference/fault.ts";

export const keyHeader = "idempotency-key";

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

/** Refuses the header, for operations whose answers are not kept: a repeat would be charged again. */
export function refuseKey({ request }: Pick<Call, "request">, answers: string): void {
  if (!request.headers.has(keyHeader)) return;
  throw new Fault(
    "unsupported_feature",
    `This service keeps no answers of ${answers}, so an '${keyHeader}' has no effect there. Remove the header: a repeat is a request of its own, and is charged.`,
    { param: keyHeader },
  );
}

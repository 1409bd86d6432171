/** GET /v1/responses with an upgrade: a WebSocket for many responses. It is no part of OpenAPI, which knows no sockets. */
import { Socket } from "../../http/socket.ts";
import { Fault } from "../../inference/fault.ts";
import { credentialFaults } from "../openapi/faults.ts";
import { operation } from "../operation.ts";
import { path } from "../operations/responses-examples.ts";
import { ResponsesConnection } from "./connection.ts";

export const connectResponses = operation({
  operationId: "connectResponses",
  method: "get",
  path,
  tag: "Inference",
  summary: "Open a WebSocket",
  description: "A WebSocket on which many responses are created, one after another or in lanes.",
  scope: "inference:create",
  success: { description: "The connection is a WebSocket.", headers: [], content: {} },
  faults: [...credentialFaults, "upgrade_not_supported"],
  otherFaults: true,
  faultShape: "responses",
  examples: [],
  handle(dependencies, call, { principal }) {
    const connection = new ResponsesConnection(dependencies, call, principal);
    if (!connection.enter()) throw noRoom();
    if (call.connection.upgrade?.(new Socket(connection), call.requestId)) return new Response(null, { status: 101 });
    connection.closed();
    throw incomplete();
  },
});

/** Codex answers 426 with POST, at once and for the rest of its session. */
function noRoom(): Fault {
  return new Fault(
    "upgrade_not_supported",
    "This service has no room for another WebSocket now. Send a POST request with 'stream': true.",
  );
}

function incomplete(): Fault {
  return new Fault(
    "upgrade_not_supported",
    "The head of this request asks for no WebSocket of version 13. Send a POST request with 'stream': true.",
  );
}

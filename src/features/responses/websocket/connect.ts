/** GET /v1/responses with an upgrade: a WebSocket for many responses. */
import { Socket } from "../../../core/http/socket.ts";
import { Fault } from "../../../core/inference/fault.ts";
import { operation } from "../../../core/operations/operation.ts";
import { path } from "../../../core/operations/responses.ts";
import type { ResponsesDependencies } from "../dependencies.ts";
import { ResponsesConnection } from "./connection.ts";

export const connectResponses = operation({
  operationId: "connectResponses",
  method: "get",
  path,
  tag: "Inference",
  summary: "Open a WebSocket",
  description:
    "Upgrades the connection to a WebSocket, on which many responses are created. Send `response.create` with the fields of `POST /v1/responses` beside `type`, as a text message; each event of the response is a message. Each response is a request of its own: it is checked, limited, metered and recorded like one, and its first event has the `request_id`, and in `headers` those that tell of its model's retirement. `stream_id` names a lane: responses of a lane follow one another, and up to 16 lanes run side by side. `generate: false` only takes the conversation. `previous_response_id` also continues the newest response of a lane of this connection, though it is not stored. A refusal is an event `error` with the `status` and the `error` of the same refusal over HTTP. After 60 minutes, and when the service restarts, the connection closes once what runs has its answer.",
  scope: "inference:create",
  success: { status: 101, description: "The connection is a WebSocket.", headers: [], content: {} },
  faults: [],
  otherFaults: true,
  faultShape: "responses",
  refusedAs: (fault) => (fault.status === 429 || fault.status === 503 ? noRoom(fault) : fault),
  examples: [],
  handle(dependencies: ResponsesDependencies, call, { principal }) {
    const connection = new ResponsesConnection(dependencies, call, principal);
    if (!connection.enter()) throw noRoom();
    if (call.connection.upgrade?.(new Socket(connection), call.requestId)) return new Response(null, { status: 101 });
    connection.closed();
    throw new Fault(
      "upgrade_not_supported",
      "The head of this request asks for no WebSocket of version 13. Send a POST request with 'stream': true.",
    );
  },
});

/**
 * The refusal of an upgrade. With 426, Codex switches to POST immediately, for the rest of its run; with another status
 * it first tries seven times more (docs/clients.md, Codex).
 */
function noRoom(cause?: Fault): Fault {
  return new Fault(
    "upgrade_not_supported",
    "This service has no room for another WebSocket now. Send a POST request with 'stream': true.",
    { cause },
  );
}

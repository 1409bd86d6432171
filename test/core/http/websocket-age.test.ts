/**
 * A WebSocket has a maximum age, an hour, after which it accepts no more requests; this test does not wait that long.
 */
import { expect, test } from "bun:test";
import { connectionLimits, ResponsesConnection } from "../../../src/features/responses/websocket/connection.ts";
import { until } from "../../harness/until.ts";

const principal = { key: { id: "key_1" } };
const dependencies = {
  bounds: {
    memory: { reservation: () => ({ [Symbol.dispose]() {} }) },
    sockets: { limits: { frame_bytes_max: 1000 }, enter: () => ({ [Symbol.dispose]() {} }) },
  },
  standings: { begin: () => ({ [Symbol.dispose]() {} }) },
  newId: () => "1",
};
const call = {
  client: "127.0.0.1",
  request: new Request("http://localhost/v1/responses"),
  connection: { isLocal: () => true },
};

test("at its age it gets an error, and is closed", async () => {
  type Parts = ConstructorParameters<typeof ResponsesConnection>;
  const connection = new ResponsesConnection(
    ...([dependencies, call, principal] as unknown as [Parts[0], Parts[1], Parts[2]]),
    {
      ...connectionLimits,
      age_ms: 20,
    },
  );
  const ends: unknown[][] = [];
  const socket = { end: (...words: unknown[]) => void ends.push(words), send: async () => {} };
  expect(connectionLimits.age_ms).toBe(3_600_000);
  expect(connection.enter()).toBeTrue();
  connection.opened(socket as unknown as Parameters<typeof connection.opened>[0]);
  await until(() => ends.length > 0, 5_000, "its end");
  expect(JSON.parse(ends[0]![1] as string)).toMatchObject({
    type: "error",
    error: { code: "websocket_connection_limit_reached" },
  });
  connection.closed();
});

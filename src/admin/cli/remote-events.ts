/**
 * For `--watch` with `--server`: reads the answers of a live verb (a management operation) from another node, which
 * sends each changed answer as an event.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { SseDecoder } from "../../core/sse/decode.ts";
import { managementPath } from "../http/gate.ts";
import { ManagementError } from "../management/error.ts";
import type { Verb } from "../management/verb.ts";
import { jsonOf, reached } from "./calling.ts";
import { type RemoteServer, refusalOf } from "./remote.ts";
import { pastProxies } from "./safe-url.ts";

const again_ms = 1_000;
/** The time after the last event for which a node may be unreachable. */
const away_ms_max = 60_000;

/**
 * Yields the answers until `stopped` aborts. A stream is opened anew if it breaks off or if its node stops: behind a
 * load balancer, another node then serves it.
 */
export async function* remoteAnswers(
  server: RemoteServer,
  { path, live }: Pick<Verb, "path" | "live">,
  stopped: AbortSignal,
): AsyncGenerator<unknown> {
  let lastEvent_ms = Number.NEGATIVE_INFINITY;
  while (!stopped.aborted) {
    try {
      for await (const { event, data } of messagesOf(server, path, stopped)) {
        if (event === "error") throw new Error((JSON.parse(data) as { error: { message: string } }).error.message);
        if (event !== live?.event) continue;
        lastEvent_ms = performance.now();
        yield JSON.parse(data);
      }
    } catch (cause) {
      if (stopped.aborted) return;
      if (cause instanceof ManagementError || performance.now() - lastEvent_ms > away_ms_max) throw cause;
    }
    await sleep(again_ms, null, { signal: stopped }).catch(() => {});
  }
}

async function* messagesOf(server: RemoteServer, path: string, stopped: AbortSignal) {
  const url = `${server.url.replace(/\/+$/, "")}${managementPath}${path}?format=events`;
  const headers = { authorization: `Bearer ${server.token}` };
  const response = await reached(server, () =>
    fetch(url, { headers, redirect: "manual", signal: stopped, ...pastProxies(url) }),
  );
  if (!response.ok) throw refusalOf(server, response.status, await jsonOf(response));
  const decoder = new SseDecoder();
  for await (const chunk of response.body!) yield* decoder.push(chunk);
}

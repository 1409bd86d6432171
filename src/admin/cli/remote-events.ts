/**
 * Reads the answer of a verb (a management operation) again and again from another node, which sends each answer as an
 * event: for `--watch` with `--server`.
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
/** How long a node may be unreachable after its last event. */
const away_ms_max = 60_000;

/**
 * Yields the answers until `stopped` aborts. A stream that breaks off, or that its node ends because the node stops, is
 * begun anew: behind a balancer, another node serves it.
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

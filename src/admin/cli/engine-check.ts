/**
 * The findings of `sluice doctor` about an engine. Any response shows that the engine runs. Only a fault that would
 * fail every request is a problem.
 */
import { notReady } from "../../config/engine.ts";
import { simulatorName } from "../../config/simulator.ts";
import { whyUnreached } from "../../config/unreached.ts";
import { Cancellation, type Signal } from "../../core/time/cancellation.ts";
import { upstreamCodecs } from "../../core/upstream/codecs.ts";
import { isOwnName } from "../../core/upstream/http1/address.ts";
import { type Client, client } from "../../core/upstream/http1/client.ts";
import { headersTo } from "../../core/upstream/send.ts";
import type { Resolving, Upstream } from "../../core/upstream/target.ts";
import { hostOf } from "../../features/probing/names.ts";
import { afterAnswer, type Resolution, unresolved } from "../../features/probing/resolution.ts";
import { resolve } from "../../features/probing/resolve.ts";
import { Warning } from "./warning.ts";

const upstream_ms = 5000;
const trust = "set tls.ca_file of its upstream to its file";

/** Checks an engine, and returns the result in one sentence. Throws an Error for a problem, or a Warning. */
export async function engineSays(upstream: Upstream): Promise<string> {
  if (upstream.name === simulatorName) return "built in; runs with the server";
  if (upstream.resolve) return replicasSay(upstream, upstream.resolve);
  const engines = client();
  const signal = Cancellation.timeout(upstream_ms);
  let status: number;
  try {
    status = await statusAt(engines, upstream, signal);
  } catch (error) {
    const why = whyUnreached(error, trust);
    if (why !== null) throw new Error(`${upstream.url} cannot be reached: ${why}`);
    throw new Error(
      `${upstream.url} ${signal.aborted ? "does not respond" : "cannot be reached"}; start the engine, or correct its url in sluice.yaml (or SLUICE_UPSTREAM_URL)`,
    );
  } finally {
    engines.close();
  }
  judge(status, upstream.url);
  return `${upstream.url} responds`;
}

function judge(status: number, where: string): void {
  if (status === 401 || status === 403) {
    throw new Error(
      `${where} refuses the key (${status}); correct its api_key in sluice.yaml (or SLUICE_UPSTREAM_KEY)`,
    );
  }
  const loading = notReady(status);
  if (loading) throw new Warning(`${where} ${loading}; wait until it is ready`);
  if (status >= 500) throw new Warning(`${where} returns ${status}; check the engine's log`);
  if (status >= 300)
    throw new Warning(`${where} responds, but does not list models (${status}); does the url end with /v1?`);
}

/** A sentence about the addresses of the engine's host name, and which of them respond. */
async function replicasSay(upstream: Upstream, how: Resolving): Promise<string> {
  const { addresses, problem } = await resolvedNow(upstream, how);
  const engines = client();
  const found = await Promise.all(
    addresses.map((address) =>
      statusAt(engines, upstream, Cancellation.timeout(upstream_ms), address).then(
        (status) => ({ address, status }),
        (error: unknown) => ({ address, status: null, why: whyUnreached(error, trust) }),
      ),
    ),
  );
  engines.close();
  for (const { address, status } of found) if (status !== null) judge(status, `${upstream.url} at ${address}`);
  const silent = found.flatMap((one) =>
    one.status === null ? [one.why === null ? one.address : `${one.address} (${one.why})`] : [],
  );
  const has = `${upstream.url} has ${addresses.length === 1 ? "one address" : `${addresses.length} addresses`}`;
  if (silent.length === addresses.length) throw new Error(`${has}, and none responds: ${silent.join(", ")}`);
  if (silent.length > 0) throw new Warning(`${has}, of which these do not respond: ${silent.join(", ")}`);
  if (problem) throw new Warning(`${has} in use (${addresses.join(", ")}), ${remarks[problem]}`);
  return `${has}, and each responds: ${addresses.join(", ")}`;
}

const remarks = {
  many: "and more that get no requests: increase resolve.addresses_max",
  own: "and others that lead to this machine, which are not asked",
  failed: "and addresses of another family that its DNS servers cannot tell",
  empty: "",
} as const;

async function resolvedNow(upstream: Upstream, how: Resolving): Promise<Resolution> {
  const host = hostOf(upstream);
  const answer = await resolve(host, how).catch((cause: unknown) => {
    throw new Error(`the name ${host} cannot be resolved (${String(cause)}); see whether its DNS servers answer`);
  });
  const rules = { addresses_max: how.addresses_max, isOwn: isOwnName(host) };
  const resolution = afterAnswer(unresolved, answer, rules, 0);
  if (resolution.addresses.length > 0) return resolution;
  throw new Error(
    resolution.problem === "own"
      ? `the name ${host} leads to this machine; if that is meant, let the url say localhost`
      : `the name ${host} has no address; start the engines, or correct the url in sluice.yaml`,
  );
}

/**
 * The status of the response to a request for the list of models, sent like all requests: with the upstream's TLS
 * settings and headers.
 */
async function statusAt(engines: Client, upstream: Upstream, signal: Signal, address?: string): Promise<number> {
  const reply = await engines.get({
    url: `${upstream.url}/models`,
    address,
    tls: upstream.tls ?? null,
    connect_ms: upstream_ms,
    headers: headersTo(upstream, upstreamCodecs[upstream.protocol]),
    signal,
  });
  reply.drop();
  return reply.status;
}

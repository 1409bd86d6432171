/** Derives, from the reports of nodes, the conditions of the fleet of which operators are notified. Pure. */
import type { Condition, NewNotice } from "./store/notice.ts";

export interface ReportedNode {
  id: string;
  name: string;
  state: "ready" | "not_ready" | "draining" | "silent";
  problems: readonly string[];
  configurationDiffers: boolean;
  certificateExpiresAt: Date | null;
  workers: number;
  workersWanted: number;
  engines: readonly { upstream: string; states: readonly { state: string; routes: number }[] }[];
}

const day_ms = 86_400_000;
/** The numbers of days before a certificate expires at which operators are notified. */
const expiry_days = [14, 3];
/** The states in which a route can answer no request. */
const failing = new Set(["open", "half-open", "down", "unresolved"]);

export function conditionsOf(nodes: readonly ReportedNode[], now: Date): Condition[] {
  const live = nodes.filter(({ state }) => state !== "silent");
  return [...enginesDown(live), ...certificates(live, now), ...nodes.flatMap(nodeFailing)];
}

/** The engines that are down: on some node, none of the engine's routes works at any of its addresses. */
function enginesDown(nodes: readonly ReportedNode[]): Condition[] {
  const seen = nodes.flatMap(({ name, engines }) =>
    [...Map.groupBy(engines, ({ upstream }) => upstream)].flatMap(([upstream, replicas]) => {
      const states = replicas.flatMap((one) => one.states.filter(({ routes }) => routes > 0));
      return states.length > 0 && states.every(({ state }) => failing.has(state)) ? [{ upstream, name }] : [];
    }),
  );
  return [...Map.groupBy(seen, ({ upstream }) => upstream)].map(([upstream, some]) => ({
    kind: "engine.down",
    ends: "engine.up",
    about: `engine:${upstream}`,
    details: { upstream, nodes: some.map(({ name }) => name) },
  }));
}

/**
 * The certificates that expire soon. Nodes whose certificates expire at the same time mostly have the same certificate,
 * so they share a notice.
 */
function certificates(nodes: readonly ReportedNode[], now: Date): Condition[] {
  const ending = nodes.flatMap(({ name, certificateExpiresAt: at }) =>
    at === null ? [] : [{ name, at: at.toISOString() }],
  );
  return [...Map.groupBy(ending, ({ at }) => at)].flatMap(([at, some]) => {
    const left_days = (Date.parse(at) - now.getTime()) / day_ms;
    const reached = expiry_days.filter((days) => left_days <= days).at(-1);
    if (reached === undefined) return [];
    const details = { nodes: some.map(({ name }) => name), expires_at: at };
    return [{ kind: "certificate.expiring", ends: null, about: `certificate:${at}:${reached}`, details }];
  });
}

function nodeFailing(node: ReportedNode): Condition[] {
  const problems = problemsOf(node);
  if (problems.length === 0) return [];
  return [
    { kind: "node.failing", ends: "node.settled", about: `node:${node.id}`, details: { node: node.name, problems } },
  ];
}

function problemsOf({ state, problems, configurationDiffers, workers, workersWanted }: ReportedNode): string[] {
  if (state === "silent") return ["it does not report any more"];
  // For a draining node it is normal that workers end one by one, and that it no longer loads a new configuration.
  if (state === "draining") return [];
  return [
    ...(state === "not_ready" ? problems : []),
    ...(configurationDiffers ? ["it has another configuration than most nodes"] : []),
    ...(workers < workersWanted ? [`${workers} of its ${workersWanted} workers run`] : []),
  ];
}

/**
 * The notice that an engine has sent data after the end of its response to a request. There is at most one such notice
 * a day for each engine.
 */
export function strayAnswer(upstream: string, at: Date): NewNotice {
  return {
    kind: "engine.stray_answer",
    about: `stray:${upstream}:${at.toISOString().slice(0, 10)}`,
    details: { upstream, at: at.toISOString() },
  };
}

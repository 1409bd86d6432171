import { ask } from "../../test/faults/stores.ts";
import { until } from "../../test/harness/until.ts";
import { has, type Incident } from "./incident.ts";
import { trickle } from "./load.ts";
import { frail } from "./site.ts";

const dead: Incident = {
  what: "an engine is dead",
  alerts: ["SluiceErrors", "SluiceModelWithoutRoute", "SluiceUpstreamFailing"],
  async begin(site) {
    const { nodes, engines } = site;
    engines[0].set("dead");
    const loads = nodes.map((node) => trickle(node, { model: frail, directives: "tokens=4" }, 5));
    return {
      notices: { begun: ["The engine engine-0 is down"], over: ["The engine engine-0 is back"] },
      signs: async () => ({
        SluiceErrors: [
          "*Errors by code* has upstream_unavailable",
          await has(site, 'http_requests_total{code="upstream_unavailable"} > 0'),
        ],
        SluiceModelWithoutRoute: [
          "*Routes by state* has one that is open or half-open",
          await has(site, 'upstream_routes{state=~"open|half-open"} > 0'),
        ],
        SluiceUpstreamFailing: [
          "*Attempts* has unreachable or broken",
          await has(site, 'upstream_attempts_total{outcome=~"unreachable|broken"} > 0'),
        ],
      }),
      async mend() {
        engines[0].set("well");
        // A route that failed counts as healthy (its circuit breaker is closed) only after it has served a request.
        const isKnown = async () => !(await has(site, 'upstream_routes{state!="closed"}'));
        await until(isKnown, 60_000, "the routes to close");
        for (const load of loads) await load.stop();
      },
    };
  },
};

const refusing: Incident = {
  what: "an engine does not take the key",
  alerts: ["SluiceUpstreamRefused"],
  async begin({ nodes: [first] }) {
    const load = trickle(first, { model: frail, directives: "status=401" }, 1);
    return {
      signs: async () => ({
        SluiceUpstreamRefused: [
          "`upstream_refused` in the log, with the status",
          /"event":"upstream_refused".*401/.test(first.log()),
        ],
      }),
      mend: load.stop,
    };
  },
};

const forgotten: Incident = {
  what: "an engine was drained yesterday, and nobody resumed it",
  alerts: ["SluiceDrainForgotten"],
  async begin({ nodes: [first], postgres }) {
    await first.command("upstream", "drain", "engine-0");
    await ask(postgres.port, (db) => db.exec("update drained_engine set drained_at = now() - interval '25 hours'"));
    return {
      signs: async () => ({
        SluiceDrainForgotten: [
          "`sluice upstream drained` names it",
          (await first.command("upstream", "drained")).includes("engine-0"),
        ],
      }),
      mend: async () => void (await first.command("upstream", "resume", "engine-0")),
    };
  },
};

const slow: Incident = {
  what: "an engine says nothing for 31 s",
  alerts: ["SluiceSlowFirstPart"],
  async begin(site) {
    const load = trickle(site.nodes[0], { model: frail, directives: "ttft=31000 tokens=2", stream: true }, 1);
    return {
      signs: async () => ({
        SluiceSlowFirstPart: [
          "*Requests in flight* of the engine",
          await has(site, "sum by (upstream) (upstream_requests_in_flight) > 10"),
        ],
      }),
      mend: load.stop,
    };
  },
};

const hanging: Incident = {
  what: "an engine says nothing, and clients give up after a second",
  alerts: ["SluiceNothingShown"],
  async begin(site) {
    const what = { model: frail, directives: "ttft=600000", stream: true, patience_ms: 1000 };
    const load = trickle(site.nodes[0], what, 10);
    return {
      signs: async () => ({
        SluiceNothingShown: [
          "*Requests in flight* of the engine",
          await has(site, "sum by (upstream) (upstream_requests_in_flight) > 3"),
        ],
      }),
      mend: load.stop,
    };
  },
};

const full: Incident = {
  what: "an engine answers 429",
  alerts: ["SluiceUpstreamFull"],
  async begin(site) {
    const load = trickle(site.nodes[0], { model: frail, directives: "status=429" }, 10);
    return {
      signs: async () => ({
        SluiceUpstreamFull: [
          "clients get 429 capacity_exceeded",
          await has(site, 'http_requests_total{status="429",code="capacity_exceeded"} > 0'),
        ],
      }),
      mend: load.stop,
    };
  },
};

const lying: Incident = {
  what: "an engine reports less than no tokens",
  alerts: ["SluiceReportsRejected"],
  async begin({ nodes: [first], engines: [engine] }) {
    engine.set("lying");
    const load = trickle(first, { model: frail, directives: "tokens=20" }, 4);
    return {
      async signs() {
        const line =
          first
            .log()
            .split("\n")
            .findLast((text) => text.includes('"report_rejected"')) ?? "";
        const id = /"request_id":"(req_\w+)"/.exec(line)?.[1];
        const printed = id === undefined ? "" : await first.command("request", "show", id);
        return {
          SluiceReportsRejected: [
            "`report_rejected` in the log, and the engine's words in `sluice request show`",
            /-1+/.test(printed),
          ],
        };
      },
      async mend() {
        engine.set("well");
        await load.stop();
      },
    };
  },
};

export const ofEngines = { forgotten, dead, refusing, slow, hanging, full, lying };

// Every mutant, by module, in the order of the modules; those of the ledger's SQL come last.

import { admission } from "./admission.ts";
import { auth } from "./auth.ts";
import { budgets } from "./budgets.ts";
import { configuration } from "./configuration.ts";
import { consoleServer } from "./console.ts";
import { edges } from "./edges.ts";
import { fleet } from "./fleet.ts";
import { found } from "./found.ts";
import { http } from "./http.ts";
import { identity } from "./identity.ts";
import { kept } from "./kept.ts";
import { ledger } from "./ledger.ts";
import { management } from "./management.ts";
import { memory } from "./memory.ts";
import type { Mutants } from "./mutant.ts";
import { notices } from "./notices.ts";
import { plans } from "./plans.ts";
import { policies } from "./policies.ts";
import { protocol } from "./protocol.ts";
import { rates } from "./rates.ts";
import { routing } from "./routing.ts";
import { slots } from "./slots.ts";
import { standing } from "./standing.ts";
import { telemetry } from "./telemetry.ts";
import { tls } from "./tls.ts";
import { usage } from "./usage.ts";
import { warming } from "./warming.ts";
import { websocket } from "./websocket.ts";
import { sse, upstream } from "./wire.ts";
import { workers } from "./workers.ts";

export const mutants: Mutants = {
  sse,
  protocol,
  auth,
  identity,
  configuration,
  console: consoleServer,
  admission,
  upstream,
  routing,
  usage,
  telemetry,
  http,
  websocket,
  management,
  memory,
  edges,
  tls,
  ledger,
  budgets,
  rates,
  standing,
  plans,
  policies,
  notices,
  warming,
  workers,
  fleet,
  found,
  kept,
  slots,
};

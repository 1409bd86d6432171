// Every mutant, by module, in the order of the modules; those of the ledger's SQL come last.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { declared, type Mutants } from "./mutant.ts";

const rooms = [
  "sse",
  "protocol",
  "auth",
  "identity",
  "configuration",
  "console",
  "admission",
  "upstream",
  "routing",
  "usage",
  "telemetry",
  "http",
  "websocket",
  "management",
  "memory",
  "edges",
  "tls",
  "ledger",
  "budgets",
  "rates",
  "standing",
  "plans",
  "policies",
  "notices",
  "warming",
  "workers",
  "fleet",
  "found",
  "kept",
  "slots",
];

const textOf = (room: string) => readFileSync(join(import.meta.dir, `${room}.mutants`), "utf8");

export const mutants: Mutants = Object.fromEntries(rooms.map((room) => [room, declared(textOf(room))]));

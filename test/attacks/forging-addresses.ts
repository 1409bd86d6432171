// Many addresses, each of which sends a few requests per second with made-up keys, below every limit for one address:
// `bun test/attacks/forging-addresses.ts PORT ADDRESSES PER_SECOND`, until it is killed. It is a separate process, so
// that it takes no time from the measuring process. Loopback has sixteen million addresses, so each attacker has one of
// its own. It starts as soon as the port is open, and prints the number of responses, by status.

import { connect, type Socket } from "node:net";
import { until } from "../harness/until.ts";
import { forgedKey } from "./flood.ts";
import { headOf } from "./talk.ts";

export interface Forgers {
  /** The number of responses so far, by status. */
  answered(): Record<string, number>;
  end(): Promise<void>;
}

export interface ForgersOptions {
  port: number;
  addresses: number;
  /** The requests per second from each address. */
  per_second: number;
}

/** Starts the attackers. The node need not listen on the port yet. */
export async function startForgers({ port, addresses, per_second }: ForgersOptions): Promise<Forgers> {
  const child = Bun.spawn([process.execPath, import.meta.path, String(port), String(addresses), String(per_second)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  let last = "";
  const reading = (async () => {
    for await (const chunk of child.stdout) last = new TextDecoder().decode(chunk).trim().split("\n").at(-1)!;
  })();
  await until(() => last !== "", 30_000, "the forgers to begin");
  return {
    answered: () => JSON.parse(last) as Record<string, number>,
    async end() {
      child.kill("SIGKILL");
      await reading;
    },
  };
}

/** Returns a function that sends a request from one address. Its connection is reused after a response. */
function forger(port: number, localAddress: string, told: (status: string) => void) {
  const idle: Socket[] = [];
  const dial = () => {
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("data", (data) => {
      const text = data.toString("latin1");
      if (!text.startsWith("HTTP/1.1 ")) return;
      told(text.slice(9, 12));
      idle.push(socket);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      const at = idle.indexOf(socket);
      if (at >= 0) idle.splice(at, 1);
    });
    return socket;
  };
  return () => void (idle.pop() ?? dial()).write(headOf("GET /v1/models", forgedKey()));
}

const tick_ms = 10;
/**
 * How many overdue requests one tick sends at most. Further overdue requests are dropped, so that a slow machine still
 * has time to read responses.
 */
const sent_at_once = 100;

async function main(port: number, addresses: number, per_second: number): Promise<void> {
  const answered: Record<string, number> = {};
  const told = (status: string) => {
    answered[status] = (answered[status] ?? 0) + 1;
  };
  setInterval(() => console.log(JSON.stringify(answered)), 200);
  while (!(await isListening(port))) await Bun.sleep(tick_ms);
  const forgers = Array.from({ length: addresses }, (_, at) =>
    forger(port, `127.9.${Math.floor(at / 250)}.${(at % 250) + 1}`, told),
  );
  const began_ms = performance.now();
  let sent = 0;
  setInterval(() => {
    const due = Math.floor(((performance.now() - began_ms) / 1000) * addresses * per_second);
    for (sent = Math.max(sent, due - sent_at_once); sent < due; sent++) forgers[sent % addresses]!();
  }, tick_ms);
}

function isListening(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ port, host: "127.0.0.1" });
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  return promise.finally(() => socket.destroy());
}

if (import.meta.main) {
  const [port = 0, addresses = 0, per_second = 0] = process.argv.slice(2).map(Number);
  await main(port, addresses, per_second);
}

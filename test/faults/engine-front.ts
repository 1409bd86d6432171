// A proxy in front of an engine that injects its faults: it refuses connections, sends nothing or late, breaks
// responses off, reports a wrong number of tokens, or sends stray bytes after a response.

import { connect, createServer, type Socket } from "node:net";

/**
 * `dead`: refuses and breaks connections; `silent`: accepts requests and sends nothing; `late`: delays all that the
 * engine sends; `lying`: reports a wrong number of tokens; `straying`: sends stray bytes after the response.
 */
export type Mood = "well" | "dead" | "silent" | "late" | "lying" | "straying";

export interface EngineFront {
  port: number;
  set(mood: Mood): void;
  /** Breaks all open connections. The fault that is set stays as it is. */
  cut(): void;
  close(): void;
}

const late_ms = 1_200;
/**
 * How long after a chunk of the response the stray bytes are sent: the response has then ended, and the connection is
 * idle.
 */
const stray_ms = 300;
/**
 * Replaces each reported number of tokens by a wrong one with as many characters, so that the body keeps its length.
 */
const lie = (text: string) =>
  text.replace(/("(?:completion|output)_tokens":)(\d{2,})/g, (_, name: string, digits: string) => {
    return `${name}-${"1".repeat(digits.length - 1)}`;
  });

export async function engineFront(target: number): Promise<EngineFront> {
  const open = new Set<Socket>();
  let mood: Mood = "well";
  const breakAll = () => {
    for (const socket of open) socket.destroy();
  };

  const server = createServer((near) => {
    near.on("error", () => {});
    if (mood === "dead") return void near.destroy();
    const far = connect(target, "127.0.0.1");
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      open.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
    }
    near.on("data", (data) => void far.write(data));
    far.on("data", (data) => {
      if (mood === "silent") return;
      if (mood === "late") return void setTimeout(() => near.writable && near.write(data), late_ms);
      if (mood === "straying") setTimeout(() => near.writable && near.write("HTTP/1.1 200 OK\r\n"), stray_ms);
      near.write(mood === "lying" ? Buffer.from(lie(data.toString("latin1")), "latin1") : data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the engine has no port");
  return {
    port: address.port,
    set(next) {
      const was = mood;
      mood = next;
      // Breaks the connections whose responses would otherwise lack bytes, or have them in another order.
      if (next === "dead" || was === "silent" || was === "late") breakAll();
    },
    cut: breakAll,
    close() {
      server.close();
      breakAll();
    },
  };
}

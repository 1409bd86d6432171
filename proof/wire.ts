// A proxy of bytes between two programs of a site, whose connections can be cut, delayed and restored.

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

export interface Wire {
  port: number;
  /** Closes every connection, and refuses new ones until `mend`. */
  cut(): void;
  /** Closes every connection once; new ones are accepted. */
  shake(): void;
  /** Holds all bytes back until `mend`, without closing any connection. */
  hold(): void;
  mend(): void;
  stop(): Promise<void>;
}

/** Starts a proxy from the port `at`, or from any free port, to the port `port`, both on this machine. */
export async function wireTo(target: { port: number; at?: number }): Promise<Wire> {
  const pairs = new Set<[Socket, Socket]>();
  let isCut = false;
  let isHeld = false;
  const server = createServer({ allowHalfOpen: true }, (inner) => {
    if (isCut) return void inner.destroy();
    const outer = connect({ port: target.port, host: "127.0.0.1", allowHalfOpen: true });
    const pair: [Socket, Socket] = [inner, outer];
    pairs.add(pair);
    const drop = () => {
      pairs.delete(pair);
      inner.destroy();
      outer.destroy();
    };
    for (const socket of pair) socket.setNoDelay(true).on("error", drop).on("close", drop);
    inner.pipe(outer);
    outer.pipe(inner);
    if (isHeld) pause(pair);
  });
  await new Promise<void>((resolve) => server.listen(target.at ?? 0, "127.0.0.1", resolve));
  const shake = () => {
    for (const [inner] of [...pairs]) inner.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    shake,
    cut() {
      isCut = true;
      shake();
    },
    hold() {
      isHeld = true;
      for (const pair of pairs) pause(pair);
    },
    mend() {
      isCut = false;
      isHeld = false;
      for (const [inner, outer] of pairs) {
        inner.pipe(outer);
        outer.pipe(inner);
      }
    },
    async stop() {
      shake();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function pause([inner, outer]: [Socket, Socket]): void {
  inner.unpipe(outer);
  outer.unpipe(inner);
  inner.pause();
  outer.pause();
}

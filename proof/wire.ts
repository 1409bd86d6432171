// A wire is a proxy of bytes between two parts of a site, which can be cut, held up and mended.

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

export interface Wire {
  port: number;
  /** Ends every connection, and refuses new ones until the wire is mended. */
  cut(): void;
  /** Ends every connection once; new ones pass. */
  shake(): void;
  /** Lets no byte pass, without closing any connection, until the wire is mended. */
  hold(): void;
  mend(): void;
  stop(): Promise<void>;
}

/** Makes a wire from a port of its own (`at`, or any that is free) to `port`, both on this machine. */
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

// A proxy between a node and one of its stores that can be cut, like a network that is partitioned: bytes are lost
// without an error, and new connections get no response.

import { connect, createServer, type Server, type Socket } from "node:net";

export interface Wire {
  port: number;
  cut(): void;
  mend(): void;
  close(): void;
}

export async function wireTo(target: number): Promise<Wire> {
  const open = new Set<Socket>();
  let parted = false;
  const server: Server = createServer((near) => {
    open.add(near);
    near.on("error", () => {});
    near.on("close", () => open.delete(near));
    if (parted) return void near.pause();
    const far = connect(target, "127.0.0.1");
    open.add(far);
    far.on("error", () => near.destroy());
    far.on("close", () => {
      open.delete(far);
      near.destroy();
    });
    near.on("close", () => far.destroy());
    near.on("data", (data) => {
      if (!parted) far.write(data);
    });
    far.on("data", (data) => {
      if (!parted) near.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the wire has no port");
  return {
    port: address.port,
    cut() {
      parted = true;
    },
    mend() {
      parted = false;
      // Closes the connections that were open during the cut, because their ends would never notice the missing bytes.
      for (const socket of open) socket.destroy();
    },
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}

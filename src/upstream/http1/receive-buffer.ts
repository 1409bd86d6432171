/**
 * How much the system keeps of what an engine has sent and nobody has read. By itself it goes up to several MiB for each
 * connection whose reader is slow, and the runtime then brings half a MiB in one read.
 */
import { dlopen, ptr } from "bun:ffi";

/** The constant of Linux, on the machines that the runtime is made for. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;

/** Linux takes twice as much, and needs about half of that for its own. A token of an answer is a few hundred bytes. */
const receive_bytes = 64 * 1024;

const library = { setsockopt: { args: ["int", "int", "int", "ptr", "u32"], returns: "int" } } as const;

export type BoundReceiving = (socket: object) => void;

/** Does nothing where the system has no such means: it is no Linux, or its C library has another name. */
export function receiveBuffers(): BoundReceiving {
  if (process.platform !== "linux") return () => {};
  try {
    const { symbols } = dlopen("libc.so.6", library);
    const bytes = Int32Array.of(receive_bytes);
    return (socket) => {
      // The runtime's types do not say that a socket has one.
      const { fd } = socket as { fd?: unknown };
      if (typeof fd === "number" && fd >= 0)
        symbols.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, ptr(bytes), bytes.byteLength);
    };
  } catch {
    return () => {};
  }
}

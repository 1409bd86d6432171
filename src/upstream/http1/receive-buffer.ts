/**
 * Limits how much the system keeps of unread bytes from an engine. By default it grows to several MiB for each
 * connection whose reader is slow, and the runtime then returns half a MiB in one read.
 */
import { dlopen, ptr } from "bun:ffi";

/** The constant of Linux on the processors that the runtime supports. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;

/** Linux doubles the value, and needs about half of that for itself. A token of an answer takes a few hundred bytes. */
const receive_bytes = 64 * 1024;

const library = { setsockopt: { args: ["int", "int", "int", "ptr", "u32"], returns: "int" } } as const;

export type BoundReceiving = (socket: object) => void;

/** Does nothing on a system other than Linux, or one whose C library has another name. */
export function receiveBuffers(): BoundReceiving {
  if (process.platform !== "linux") return () => {};
  try {
    const { symbols } = dlopen("libc.so.6", library);
    const bytes = Int32Array.of(receive_bytes);
    return (socket) => {
      // The runtime's types do not declare the descriptor of a socket.
      const { fd } = socket as { fd?: unknown };
      if (typeof fd === "number" && fd >= 0)
        symbols.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, ptr(bytes), bytes.byteLength);
    };
  } catch {
    return () => {};
  }
}

/** Calls of the system for what the runtime does not do with a socket, on Linux. */
import { dlopen, ptr } from "bun:ffi";

/** The constants of Linux on the processors that the runtime supports. */
const SOL_SOCKET = 1;
const SO_RCVBUF = 8;
const MSG_PEEK = 2;
const MSG_DONTWAIT = 64;

/** Linux doubles the value, and needs about half of that for itself. A token of an answer takes a few hundred bytes. */
const receive_bytes = 64 * 1024;

const library = {
  setsockopt: { args: ["int", "int", "int", "ptr", "u32"], returns: "int" },
  recv: { args: ["int", "ptr", "u64", "int"], returns: "int" },
} as const;

export interface SocketCalls {
  /**
   * Limits how much the system keeps of unread bytes from an engine. By default it grows to several MiB for each
   * connection whose reader is slow, and the runtime then returns half a MiB in one read.
   */
  boundReceiving(socket: object): void;
  /** Reports whether the system has received bytes, or the peer's end, that the runtime has not yet read. */
  hasUnread(socket: object): boolean;
}

/** Do nothing, and tell nothing. */
const absent: SocketCalls = { boundReceiving() {}, hasUnread: () => false };

/** They are absent on a system other than Linux, or one whose C library has another name. */
export function socketCalls(): SocketCalls {
  if (process.platform !== "linux") return absent;
  try {
    const { symbols } = dlopen("libc.so.6", library);
    const limit = Int32Array.of(receive_bytes);
    const limitAt = ptr(limit);
    const peeked = new Uint8Array(1);
    const peekedAt = ptr(peeked);
    return {
      boundReceiving(socket) {
        const fd = descriptorOf(socket);
        if (fd >= 0) symbols.setsockopt(fd, SOL_SOCKET, SO_RCVBUF, limitAt, limit.byteLength);
      },
      hasUnread(socket) {
        const fd = descriptorOf(socket);
        return fd >= 0 && symbols.recv(fd, peekedAt, peeked.byteLength, MSG_PEEK | MSG_DONTWAIT) >= 0;
      },
    };
  } catch {
    return absent;
  }
}

/** The runtime's types do not declare the descriptor of a socket. */
function descriptorOf(socket: object): number {
  const { fd } = socket as { fd?: unknown };
  return typeof fd === "number" ? fd : -1;
}

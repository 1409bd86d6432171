/** System calls on a socket that the runtime does not offer, on Linux. */
import { dlopen, ptr } from "bun:ffi";

/** The constants of Linux on the processors that the runtime supports. */
const MSG_PEEK = 2;
const MSG_DONTWAIT = 64;

const library = { recv: { args: ["int", "ptr", "u64", "int"], returns: "int" } } as const;

export interface SocketCalls {
  /** Whether the system has received bytes, or the peer's end, that the runtime has not read yet. */
  hasUnread(socket: object): boolean;
}

/** For systems without these calls: nothing is known. */
const absent: SocketCalls = { hasUnread: () => false };

/** The calls; `absent` on a system other than Linux, or one whose C library has another name. */
export function socketCalls(): SocketCalls {
  if (process.platform !== "linux") return absent;
  try {
    const { symbols } = dlopen("libc.so.6", library);
    const peeked = new Uint8Array(1);
    const peekedAt = ptr(peeked);
    return {
      hasUnread(socket) {
        const fd = descriptorOf(socket);
        return fd >= 0 && symbols.recv(fd, peekedAt, peeked.byteLength, MSG_PEEK | MSG_DONTWAIT) >= 0;
      },
    };
  } catch {
    return absent;
  }
}

/** The file descriptor of a socket, which the runtime's types do not declare. */
function descriptorOf(socket: object): number {
  const { fd } = socket as { fd?: unknown };
  return typeof fd === "number" ? fd : -1;
}

/**
 * Closes a listening socket without losing clients that have connected. Closing resets connections that were not
 * accepted yet: a balancer that has sent its request by then can only answer 502. So a packet filter first drops the
 * first packets of new connections: their clients try again a second later, find the port closed and go elsewhere,
 * while all that were connected are accepted and served.
 */

import { dlopen, ptr } from "bun:ffi";
import { readdirSync } from "node:fs";

/** Linux's constants for socket options, on the processors that the runtime supports. */
const SOL_SOCKET = 1;
const SO_ATTACH_FILTER = 26;
const SO_ACCEPTCONN = 30;

const library = {
  setsockopt: { args: ["int", "int", "int", "ptr", "u32"], returns: "int" },
  getsockopt: { args: ["int", "int", "int", "ptr", "ptr"], returns: "int" },
  getsockname: { args: ["int", "ptr", "ptr"], returns: "int" },
} as const;

/**
 * Prepares the sockets that listen on the port: once the returned `end` is called, they accept no more handshakes. Null
 * on a system other than Linux, or one whose C library has another name.
 */
export function handshakesOn(port: number): { end(): void } | null {
  if (process.platform !== "linux") return null;
  try {
    const { symbols } = dlopen("libc.so.6", library);
    const listens = (descriptor: number) => {
      const [flag, bytes] = [new Int32Array(1), Uint32Array.of(4)];
      const result = symbols.getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, ptr(flag), ptr(bytes));
      return result === 0 && flag[0] === 1;
    };
    const portOf = (descriptor: number) => {
      const [address, bytes] = [new Uint8Array(128), Uint32Array.of(128)];
      const result = symbols.getsockname(descriptor, ptr(address), ptr(bytes));
      return result === 0 ? new DataView(address.buffer).getUint16(2) : null;
    };
    const listening = readdirSync("/proc/self/fd")
      .map(Number)
      .filter((descriptor) => listens(descriptor) && portOf(descriptor) === port);
    if (listening.length === 0) return null;
    return {
      end() {
        const { program, instructions } = withoutFirstPackets();
        for (const descriptor of listening)
          symbols.setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, ptr(program), program.byteLength);
        // Keeps the instructions in memory until the system has read them.
        void instructions.byteLength;
      },
    };
  } catch {
    return null;
  }
}

/** A packet filter that drops SYN without ACK and passes all other packets. Offsets count from the TCP header. */
function withoutFirstPackets(): { program: Uint8Array; instructions: Uint8Array } {
  const flags = 13;
  const [syn, synOrAck] = [0x02, 0x12];
  const steps = [
    { code: 0x30, value: flags }, // load the byte of flags
    { code: 0x54, value: synOrAck }, // keep only SYN and ACK of it
    { code: 0x15, value: syn, unequal: 1 }, // skip the next step unless the byte is equal
    { code: 0x06, value: 0 }, // pass nothing
    { code: 0x06, value: 0xffff_ffff }, // pass all
  ];
  const instructions = new Uint8Array(8 * steps.length);
  const written = new DataView(instructions.buffer);
  for (const [index, { code, value, unequal }] of steps.entries()) {
    written.setUint16(8 * index, code, true);
    written.setUint8(8 * index + 3, unequal ?? 0);
    written.setUint32(8 * index + 4, value, true);
  }
  const program = new Uint8Array(16);
  const head = new DataView(program.buffer);
  head.setUint16(0, steps.length, true);
  head.setBigUint64(8, BigInt(ptr(instructions)), true);
  return { program, instructions };
}

// A DNS server over UDP and TCP on this machine that responds as a test says: with addresses of both families, that a
// name does not exist, with a failure, or not at all.

import { createSocket } from "node:dgram";
import { createServer, type Socket } from "node:net";

export interface Records {
  ipv4?: string[];
  ipv6?: string[];
  ttl_s?: number;
  /**
   * The response to questions for this name. `absent`: there is no such name. `silent`: the server does not respond.
   * `ipv6`: only questions for IPv6 addresses fail.
   */
  says?: "failure" | "refusal" | "absent" | "silent" | { ipv6: "failure" };
}

export interface NameServer {
  /** The server's address and port: `ADDRESS:PORT`. */
  at: string;
  /** The records by name, without the final dot. A name that is not in the map does not exist. */
  names: Map<string, Records>;
  /** How many questions arrived over each protocol. */
  asked: { udp: number; tcp: number };
  stop(): Promise<void>;
}

const types = { ipv4: 1, ipv6: 28 } as const;
const codes = { failure: 2, absent: 3, refusal: 5 } as const;
/** The maximum size of a response over UDP, unless the client allows more. */
const udp_bytes_max = 512;

export async function startNameServer(): Promise<NameServer> {
  const names: NameServer["names"] = new Map();
  const asked = { udp: 0, tcp: 0 };
  const sockets = new Set<Socket>();
  const tcp = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    let read = Buffer.alloc(0);
    socket.on("data", (bytes) => {
      read = Buffer.concat([read, bytes]);
      if (read.length < 2 || read.length < 2 + read.readUInt16BE(0)) return;
      asked.tcp += 1;
      const answer = answerTo(read.subarray(2, 2 + read.readUInt16BE(0)), names);
      read = Buffer.alloc(0);
      if (answer) socket.end(Buffer.concat([number(answer.length), answer]));
    });
  });
  const udp = createSocket("udp4");
  udp.on("message", (question, { port, address }) => {
    asked.udp += 1;
    const answer = answerTo(question, names);
    if (answer) udp.send(answer.length > udp_bytes_max ? cut(answer) : answer, port, address);
  });
  await new Promise<void>((ready) => tcp.listen(0, "127.0.0.1", ready));
  const { port } = tcp.address() as { port: number };
  await new Promise<void>((ready) => udp.bind(port, "127.0.0.1", ready));
  return {
    at: `127.0.0.1:${port}`,
    names,
    asked,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await Promise.all([new Promise<void>((done) => udp.close(done)), new Promise((done) => tcp.close(done))]);
    },
  };
}

function answerTo(question: Buffer, names: NameServer["names"]): Buffer | null {
  const labels: string[] = [];
  let at = 12;
  for (let length = question[at]!; length > 0; length = question[at]!) {
    labels.push(question.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = question.readUInt16BE(at + 1);
  const known = names.get(labels.join(".").toLowerCase()) ?? { says: "absent" };
  const said = typeof known.says === "object" ? (type === types.ipv6 ? "failure" : undefined) : known.says;
  if (said === "silent") return null;
  const addresses = said
    ? []
    : type === types.ipv4
      ? (known.ipv4 ?? [])
      : type === types.ipv6
        ? (known.ipv6 ?? [])
        : [];
  const records = addresses.map((address) => {
    const data = type === types.ipv4 ? Buffer.from(address.split(".").map(Number)) : bytes6(address);
    const ttl = Buffer.alloc(4);
    ttl.writeUInt32BE(known.ttl_s ?? 0);
    return Buffer.concat([number(0xc00c), number(type), number(1), ttl, number(data.length), data]);
  });
  const head = Buffer.concat([
    ...[question.subarray(0, 2), number(0x8180 | (said ? codes[said] : 0))],
    ...[number(1), number(records.length), number(0), number(0)],
  ]);
  return Buffer.concat([head, question.subarray(12, at + 5), ...records]);
}

/**
 * Truncates a DNS response to its question section, and sets the TC bit, which says that the response was truncated.
 */
function cut(answer: Buffer): Buffer {
  const end = answer.indexOf(0, 12) + 5;
  const short = Buffer.from(answer.subarray(0, end));
  short.writeUInt16BE(answer.readUInt16BE(2) | 0x0200, 2);
  short.writeUInt16BE(0, 6);
  return short;
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}

function bytes6(address: string): Buffer {
  const [front = "", back] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":"));
  const zeros = Array<string>(8 - groups(front).length - groups(back ?? "").length).fill("0");
  return Buffer.concat([...groups(front), ...zeros, ...groups(back ?? "")].map((group) => number(parseInt(group, 16))));
}

// A connection pooler in front of Postgres, like PgBouncer: it gives each transaction, or each client, one of a few
// sessions of the server. It implements only as much of the protocol as a server needs that trusts every user.

import { connect, createServer, type Socket } from "node:net";

export interface PoolerOptions {
  mode: "session" | "transaction" | "statement";
  sessions_max: number;
  /** Whether the session that was free for longest is used next, instead of the one that was freed last. */
  isRoundRobin?: boolean;
}

export interface Pooler {
  url: string;
  stop(): Promise<void>;
}

/** The parameters that PgBouncer allows at the start of a session. */
const parameters = /^(user|database|application_name|timezone|datestyle|client_encoding|standard_conforming_strings)$/i;

interface Session {
  socket: Socket;
  client: Client | null;
  /** How many responses of the server to messages of the client are still incomplete. */
  due: number;
}
interface Client {
  socket: Socket;
  session: Session | null;
  /** Messages of the client that wait for a session. */
  waiting: Buffer[];
}

export async function startPooler(server: string, options: PoolerOptions): Promise<Pooler> {
  const { hostname, port, pathname, username } = new URL(server);
  const free: Session[] = [];
  const queue: Client[] = [];
  const sockets = new Set<Socket>();
  let count = 0;

  function newSession(): Session {
    count += 1;
    const socket = connect(Number(port), hostname);
    sockets.add(socket);
    const session: Session = { socket, client: null, due: 1 };
    let isStarted = false;
    socket.write(startup({ user: username, database: pathname.slice(1) }));
    socket.on("error", () => {});
    socket.on(
      "data",
      messages(
        (type, message) => {
          const isReady = type === "Z";
          if (isReady && options.mode === "statement" && message.at(-1) !== 0x49) return refused(session);
          if (isStarted) session.client?.socket.write(message);
          if (!isReady) return;
          session.due -= 1;
          isStarted = true;
          if (session.due === 0 && message.at(-1) === 0x49) released(session);
        },
        { isStarted: true },
      ),
    );
    return session;
  }

  /** Closes the connection to the server, and the client's with an error that says why. */
  function refused(session: Session): void {
    count -= 1;
    session.client?.socket.end(refusal("transaction blocks not allowed in statement pooling mode"));
    if (session.client) session.client.session = null;
    session.socket.destroy();
  }

  function released(session: Session): void {
    const { client } = session;
    if (client && options.mode === "session" && !client.socket.destroyed) return;
    if (client) client.session = null;
    session.client = null;
    const next = queue.shift();
    if (next) give(session, next);
    else free.push(session);
  }

  function give(session: Session, client: Client): void {
    session.client = client;
    client.session = session;
    for (const message of client.waiting.splice(0)) send(session, message);
  }

  function send(session: Session, message: Buffer): void {
    if (message[0] === 0x53 || message[0] === 0x51) session.due += 1;
    session.socket.write(message);
  }

  function asked(client: Client, message: Buffer): void {
    if (client.session) {
      send(client.session, message);
      return;
    }
    client.waiting.push(message);
    if (queue.includes(client)) return;
    const session = options.isRoundRobin ? free.shift() : free.pop();
    if (session) {
      give(session, client);
      return;
    }
    queue.push(client);
    if (count < options.sessions_max) newSession();
  }

  const listener = createServer((socket) => {
    sockets.add(socket);
    const client: Client = { socket, session: null, waiting: [] };
    socket.on("error", () => {});
    socket.on(
      "data",
      messages((type, message) => {
        if (type === "X") return void socket.end();
        if (type !== "") return asked(client, message);
        const unknown = named(message).find((name) => !parameters.test(name));
        if (unknown) return void socket.end(refusal(`unsupported startup parameter: ${unknown}`));
        socket.write(Buffer.concat([framed("R", Buffer.alloc(4)), framed("Z", Buffer.from("I"))]));
      }),
    );
    socket.on("close", () => {
      const { session } = client;
      if (!session) return;
      // The session's settings, locks and transaction belong to the client that left, so the session is closed.
      session.socket.destroy();
      count -= 1;
    });
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const address = listener.address() as { port: number };
  const url = new URL(server);
  url.host = `127.0.0.1:${address.port}`;
  return {
    url: url.href,
    async stop() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** Calls `each` with the type and the bytes of each message; a client's first message has no type. */
function messages(each: (type: string, message: Buffer) => void, from = { isStarted: false }): (chunk: Buffer) => void {
  let rest = Buffer.alloc(0);
  let { isStarted } = from;
  return (chunk) => {
    rest = Buffer.concat([rest, chunk]);
    while (true) {
      const head = isStarted ? 1 : 0;
      if (rest.length < head + 4) return;
      const length = head + rest.readUInt32BE(head);
      if (rest.length < length) return;
      const message = rest.subarray(0, length);
      rest = rest.subarray(length);
      const type = isStarted ? String.fromCharCode(message[0]!) : "";
      isStarted = true;
      each(type, message);
    }
  };
}

function framed(type: string, body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([Buffer.from(type), length, body]);
}

function startup(values: Record<string, string>): Buffer {
  const version = Buffer.alloc(4);
  version.writeUInt32BE(196_608);
  const words = Object.entries(values)
    .flat()
    .map((word) => `${word}\0`);
  return framed("", Buffer.concat([version, Buffer.from(`${words.join("")}\0`)]));
}

const named = (message: Buffer): string[] =>
  message
    .subarray(8)
    .toString()
    .split("\0")
    .filter((word, at) => at % 2 === 0 && word !== "");

function refusal(text: string): Buffer {
  return framed("E", Buffer.from(`SFATAL\0VFATAL\0C08P01\0M${text}\0\0`));
}

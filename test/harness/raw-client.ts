// A client on a bare TCP socket, which shows what an SDK would hide.

import { connect, type Socket } from "node:net";

export interface RawClient {
  /**
   * Resolves when the operating system has accepted the bytes; rejects with the error that a client would see: EPIPE,
   * ECONNRESET.
   */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Reads until the text matches `done` or the connection closes; rejects if the connection breaks before that. */
  read(done?: RegExp, deadline_ms?: number): Promise<string>;
  /** Resolves when the server has closed the connection. */
  closed(deadline_ms?: number): Promise<void>;
  leave(): void;
}

const standard_ms = 10_000;
/** Matches a response whose body is one complete JSON object. */
const wholeJson = /\r\n\r\n\{[\s\S]*\}$/;
/** A pattern for `read` that matches nothing, so that it reads until the server closes the connection. */
export const untilClosed = /(?!)/;

export async function rawClient(url: string, from?: { localAddress: string }): Promise<RawClient> {
  const socket = await connected(url, from);
  const closing = Promise.withResolvers<void>();
  let failure: Error | null = null;
  socket.on("error", (error) => {
    failure ??= error;
  });
  socket.on("close", () => closing.resolve());
  socket.pause();
  let got = "";
  return {
    write(bytes) {
      if (failure) return Promise.reject(failure);
      const written = new Promise<void>((resolve, reject) =>
        socket.write(bytes, (error) => (error ? reject(error) : resolve())),
      );
      return Promise.race([written, closing.promise.then(() => Promise.reject(failure ?? new Error("closed")))]);
    },
    async read(done = wholeJson, deadline_ms = standard_ms) {
      const seen = new Promise<void>((resolve) => {
        if (done.test(got)) return resolve();
        socket.on("data", (data) => {
          got += data;
          if (done.test(got)) resolve();
        });
      });
      socket.resume();
      await bounded(Promise.race([seen, closing.promise]), deadline_ms, "an answer");
      if (failure && !done.test(got)) throw failure;
      const text = got;
      got = "";
      return text;
    },
    closed(deadline_ms = standard_ms) {
      socket.resume();
      return bounded(closing.promise, deadline_ms, "the server to close the connection");
    },
    leave: () => void socket.destroy(),
  };
}

function connected(url: string, from: { localAddress: string } | undefined): Promise<Socket> {
  const { port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ port: Number(port), host: "127.0.0.1", ...from }, () => resolve(socket));
    socket.once("error", reject);
  });
}

async function bounded(work: Promise<void>, ms: number, what: string): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${ms} ms for ${what}`)), ms);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
}

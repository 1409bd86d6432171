/** The connection on which a request came: its address, and the runtime's timeout for it. */
import { type Bounds, isLoopback } from "./bounds.ts";
import type { ClientConnection } from "./call.ts";
import { seconds } from "./listen.ts";
import type { Socket } from "./socket.ts";

export interface ConnectionDependencies {
  bounds: Pick<Bounds, "clientAddress">;
  limits: { idle_ms: number };
}

type Server = Pick<Bun.Server<unknown>, "requestIP" | "timeout" | "upgrade">;

/** A request's connection as the runtime knows it. */
export class RuntimeConnection implements ClientConnection {
  readonly #dependencies: ConnectionDependencies;
  readonly #request: Request;
  readonly #server: Server | null;

  constructor(dependencies: ConnectionDependencies, request: Request, server: Server | null) {
    this.#dependencies = dependencies;
    this.#request = request;
    this.#server = server;
  }

  address(): string {
    return this.#dependencies.bounds.clientAddress(this.#peer(), this.#request.headers);
  }

  isLocal(): boolean {
    return isLoopback(this.#peer());
  }

  keepOpen(isKept: boolean): void {
    this.#server?.timeout(this.#request, isKept ? 0 : seconds(this.#dependencies.limits.idle_ms));
  }

  upgrade(socket: Socket, requestId: string): boolean {
    const headers = { "x-service-request-id": requestId, "x-request-id": requestId };
    return this.#server?.upgrade(this.#request, { data: socket, headers }) ?? false;
  }

  #peer(): string {
    return this.#server?.requestIP(this.#request)?.address ?? "";
  }
}

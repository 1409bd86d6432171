/** An error of the simulator, which its server writes in the form of engines. */
export class SimulatorRefusal extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly code: string | null = null,
    readonly param: string | null = null,
  ) {
    super(message);
  }

  get type(): string {
    if (this.status === 401) return "authentication_error";
    if (this.status === 429) return "rate_limit_error";
    return this.status < 500 ? "invalid_request_error" : "server_error";
  }
}

/** An error that the simulator's server sends in the form that engines use. */
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

import { Fault, type FaultCode, type FaultDetails, managementStatusOf } from "../inference/fault.ts";

/** A refusal: an administrator asked for something that cannot be done. The message says why, and what to do instead. */
export class ManagementError extends Fault {
  constructor(message: string, code: FaultCode = "invalid_value", details: FaultDetails = {}) {
    super(code, message, details);
    this.name = "ManagementError";
  }

  override get status(): number {
    return managementStatusOf(this.code);
  }
}

export function fail(message: string, code?: FaultCode): never {
  throw new ManagementError(message, code);
}

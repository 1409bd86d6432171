import {
  Fault,
  type FaultCode,
  type FaultDetails,
  faultCatalogue,
  managementStatusOf,
} from "../../core/inference/fault.ts";

/** Thrown by a verb that refuses to act. The message says why, and what to do instead. */
export class ManagementError extends Fault {
  constructor(message: string, code: FaultCode = "invalid_value", details: FaultDetails = {}) {
    super(code, message, details);
    this.name = "ManagementError";
  }

  override get status(): number {
    return managementStatusOf(this.code);
  }
}

/**
 * The error for a refusal that another process sent. A code that this build does not know becomes the most general
 * code.
 */
export function refusalFrom(message: string, code: unknown): ManagementError {
  const known = typeof code === "string" && Object.hasOwn(faultCatalogue, code);
  return new ManagementError(message, known ? (code as FaultCode) : undefined);
}

export function fail(message: string, code?: FaultCode): never {
  throw new ManagementError(message, code);
}

import {
  Fault,
  type FaultCode,
  type FaultDetails,
  faultCatalogue,
  managementStatusOf,
} from "../../core/inference/fault.ts";

/** The refusal of a verb. The message says why, and what to do instead. */
export class ManagementError extends Fault {
  constructor(message: string, code: FaultCode = "invalid_value", details: FaultDetails = {}) {
    super(code, message, details);
    this.name = "ManagementError";
  }

  override get status(): number {
    return managementStatusOf(this.code);
  }
}

/** A refusal that another process sent. A code that this build does not have becomes the most general one. */
export function refusalFrom(message: string, code: unknown): ManagementError {
  const known = typeof code === "string" && Object.hasOwn(faultCatalogue, code);
  return new ManagementError(message, known ? (code as FaultCode) : undefined);
}

export function fail(message: string, code?: FaultCode): never {
  throw new ManagementError(message, code);
}

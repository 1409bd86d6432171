/** Requests of devices that wait for approval (RFC 8628). Implemented by `postgres`; docs/identity.md, Devices. */

export interface NewDeviceRequest {
  deviceHash: Uint8Array;
  userHash: Uint8Array;
  /** The name that the program reports, and the address from which the request came. */
  agent: string;
  address: string;
  lasts_ms: number;
  /** The least time between two polls of the device. */
  interval_s: number;
}

export interface DeviceRequestLimits {
  of_address_max: number;
  all_max: number;
}

/** A device's request that waits for approval, as the approval page shows it. */
export interface PendingDevice {
  agent: string;
  address: string;
  createdAt: Date;
}

export interface DeviceApproval {
  personId: string;
  organizationId: string;
  issuerSession: string | null;
  /** The issuer's tokens, encrypted. */
  tokens: Uint8Array | null;
}

export type DeviceAnswer =
  /** The response to a poll by the device. `interval_s`: the new least time between polls. */
  | { is: "pending" }
  | { is: "too_soon"; interval_s: number }
  | { is: "denied" }
  | { is: "unknown" }
  | ({ is: "approved" } & DeviceApproval & Pick<PendingDevice, "agent" | "address">);

export interface DeviceRequests {
  /** Stores a request. "full": too many requests wait for approval, from this address or in all. */
  add(request: NewDeviceRequest, limits: DeviceRequestLimits): Promise<"added" | "full">;
  find(userHash: Uint8Array): Promise<PendingDevice | null>;
  /** Approves a request. False: no request waits under this code. A decision, whether approval or denial, is final. */
  approve(userHash: Uint8Array, approval: DeviceApproval): Promise<boolean>;
  deny(userHash: Uint8Array): Promise<boolean>;
  /**
   * The state of the device's request, for a poll of the device. An approval or a denial is returned once; then the
   * request is unknown.
   */
  poll(deviceHash: Uint8Array): Promise<DeviceAnswer>;
  forget(): Promise<number>;
}

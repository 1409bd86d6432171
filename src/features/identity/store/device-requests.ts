/** Devices that wait until somebody approves them (RFC 8628). Implemented by `postgres`; docs/identity.md, Devices. */

export interface NewDeviceRequest {
  deviceHash: Uint8Array;
  userHash: Uint8Array;
  /** The name that the program gives itself, and the address that the request came from. */
  agent: string;
  address: string;
  lasts_ms: number;
  /** How long the device has to wait between two polls. */
  interval_s: number;
}

export interface DeviceRequestLimits {
  of_address_max: number;
  all_max: number;
}

/** A request that waits, as the page of approval shows it. */
export interface PendingDevice {
  agent: string;
  address: string;
  createdAt: Date;
}

export interface DeviceApproval {
  personId: string;
  organizationId: string;
  issuerSession: string | null;
  /** The issuer's tokens, sealed. */
  tokens: Uint8Array | null;
}

export type DeviceAnswer =
  /** `interval_s`: how long the device has to wait between polls from now on. */
  | { is: "pending" }
  | { is: "too_soon"; interval_s: number }
  | { is: "denied" }
  | { is: "unknown" }
  | ({ is: "approved" } & DeviceApproval & Pick<PendingDevice, "agent" | "address">);

export interface DeviceRequests {
  /** "full": too many requests wait, of this address or in all. */
  add(request: NewDeviceRequest, limits: DeviceRequestLimits): Promise<"added" | "full">;
  find(userHash: Uint8Array): Promise<PendingDevice | null>;
  /** False: no such request waits. A decision is final. */
  approve(userHash: Uint8Array, approval: DeviceApproval): Promise<boolean>;
  deny(userHash: Uint8Array): Promise<boolean>;
  /** The device polls. An approval or a denial is answered once; then the request is unknown. */
  poll(deviceHash: Uint8Array): Promise<DeviceAnswer>;
  forget(): Promise<number>;
}

/** Devices that wait until somebody approves them (RFC 8628). Implemented by `postgres`; docs/identity.md, Devices. */

export interface NewDeviceRequest {
  deviceHash: Uint8Array;
  userHash: Uint8Array;
  /** The program that asks, in its own words, and the address from which it does. */
  agent: string;
  address: string;
  lasts_ms: number;
  /** How long it has to wait between two questions. */
  interval_s: number;
}

export interface DeviceRequestLimits {
  of_address_max: number;
  all_max: number;
}

/** A request that waits, as the person who approves it sees it. */
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
  /** `interval_s`: how long it has to wait from now on. */
  | { is: "pending" }
  | { is: "too_soon"; interval_s: number }
  | { is: "denied" }
  | { is: "unknown" }
  | ({ is: "approved" } & DeviceApproval & Pick<PendingDevice, "agent" | "address">);

export interface DeviceRequests {
  /** "full": this address, or all together, have too many that wait. */
  add(request: NewDeviceRequest, limits: DeviceRequestLimits): Promise<"added" | "full">;
  find(userHash: Uint8Array): Promise<PendingDevice | null>;
  /** False: there is none that waits. A decision is final. */
  approve(userHash: Uint8Array, approval: DeviceApproval): Promise<boolean>;
  deny(userHash: Uint8Array): Promise<boolean>;
  /** The device asks. An approval or a denial is answered once, and then unknown. */
  poll(deviceHash: Uint8Array): Promise<DeviceAnswer>;
  forget(): Promise<number>;
}

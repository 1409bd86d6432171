/** The sections of the management contract. */
export type ManagementTag =
  | "Organizations"
  | "Keys"
  | "Teams"
  | "Plans"
  | "Usage"
  | "Requests"
  | "Audit"
  | "Operators"
  | "Notices";

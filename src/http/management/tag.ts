/** The sections of the management contract. */
export type ManagementTag =
  | "Organizations"
  | "Keys"
  | "Plans"
  | "Usage"
  | "Requests"
  | "Audit"
  | "Operators"
  | "Notices";

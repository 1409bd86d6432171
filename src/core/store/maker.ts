/** By whose key a response was made. */
export interface Maker {
  organizationId: string;
  keyId: string;
}

/** The key with which a response was made, and its owners. */
export interface Maker {
  organizationId: string;
  keyId: string;
}

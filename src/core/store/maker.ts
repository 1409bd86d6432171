/** The key with which a stored response was made, and the key's organization. */
export interface Maker {
  organizationId: string;
  keyId: string;
}

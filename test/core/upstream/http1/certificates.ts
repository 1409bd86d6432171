// A certificate authority, and what it has signed: certificates of a server named localhost, of another, and of a client.

import { authority as newAuthority } from "../../../harness/certificates.ts";

const issuer = newAuthority();

function signed(name: string): { cert: string; key: string } {
  const { certificate: cert, key } = issuer.issue([name]);
  return { cert, key };
}

export const authority = issuer.certificate;
export const certificate = signed("localhost");
export const othersCertificate = signed("other.test");
export const clientPair = signed("client");

// A certificate authority, and the certificates that it has signed: for a server named localhost, for another server,
// and for a client.

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

/** Says why no connection to an engine was made, by the error's innermost cause, and what a person does about it. */

/**
 * The reason and the advice; null if nothing listens there, or nothing answers in time. `trust`: how to have an authority
 * of one's own trusted.
 */
export function whyUnreached(error: unknown, trust: string): string | null {
  const { code, message } = innermost(error);
  const told = reasons.find(({ form }) => form.test(`${code} ${message}`));
  return told ? told.says(code, trust, message) : null;
}

interface Reason {
  form: RegExp;
  says(code: string, trust: string, message: string): string;
}

/** The reasons, of which the first one counts that fits. */
const reasons: readonly Reason[] = [
  { form: /ALTNAME/, says: () => "its certificate is for another name; write that name into the url" },
  { form: /CERT_HAS_EXPIRED/, says: () => "its certificate has expired; renew it" },
  {
    form: /CERTIFICATE_REQUIRED/,
    says: () => "it asks for a client's certificate; set tls.certificate_file and tls.key_file of its upstream",
  },
  {
    form: /CERT|SIGNATURE|ISSUER/,
    says: (code, trust) => `its certificate is not trusted here (${code}); if the authority is your own, ${trust}`,
  },
  { form: /^EPROTO/, says: () => "there is no TLS with it; does it speak TLS on this port? If not, write http://" },
  {
    form: /ENOTFOUND|EAI_AGAIN|ESERVFAIL|ETIMEOUT|ENODATA/,
    says: (code) => `its name cannot be resolved here (${code}); correct the url, or ask this machine's DNS`,
  },
  { form: /leads to this machine/, says: (_, __, message) => message },
];

function innermost(error: unknown): { code: string; message: string } {
  const { cause, code = "", message = "" } = Object(error) as { cause?: unknown; code?: unknown; message?: unknown };
  return cause instanceof Error ? innermost(cause) : { code: String(code), message: String(message) };
}

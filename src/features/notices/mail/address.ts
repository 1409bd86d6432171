/**
 * E-mail addresses in the form in which they are stored: ASCII, in lower case, with an internationalized domain in its
 * ASCII form.
 */
import { domainToASCII } from "node:url";

/** The form of the part before the `@`. Quoted forms are not accepted: no real address needs them. */
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const [local_chars_max, address_chars_max] = [64, 254];

/** The address in the form in which it is stored; null if it is not an address to which mail can be sent. */
export function mailAddress(written: string): string | null {
  // White space and control characters are refused here, because `domainToASCII` drops some of them silently.
  if (/[\p{Cc}\s]/u.test(written)) return null;
  const at = written.lastIndexOf("@");
  const name = written.slice(0, Math.max(at, 0)).toLowerCase();
  const domain = domainToASCII(written.slice(at + 1)).toLowerCase();
  if (!local.test(name) || name.length > local_chars_max) return null;
  const labels = domain.split(".");
  // A domain that ends in a number is an IP address, to which no mail is sent.
  const isName = labels.length > 1 && labels.every((one) => label.test(one)) && !/^\d+$/.test(labels.at(-1)!);
  return isName && name.length + 1 + domain.length <= address_chars_max ? `${name}@${domain}` : null;
}

/** Whether mail may go to the address. `domains`: the allowed domains, in ASCII and lower case; empty: all domains. */
export function isAllowedAt(domains: readonly string[], address: string): boolean {
  return domains.length === 0 || domains.includes(address.slice(address.lastIndexOf("@") + 1));
}

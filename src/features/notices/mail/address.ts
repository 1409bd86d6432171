/** Addresses of mail as they are stored: ASCII, without capital letters, a domain of other scripts in its ASCII form. */
import { domainToASCII } from "node:url";

/** The local part of an address without quotes, which nobody's needs. */
const local = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const [local_chars_max, address_chars_max] = [64, 254];

/** Null: it is none that mail is sent to. */
export function mailAddress(written: string): string | null {
  // The form of a domain in ASCII leaves some of them out.
  if (/[\p{Cc}\s]/u.test(written)) return null;
  const at = written.lastIndexOf("@");
  const name = written.slice(0, Math.max(at, 0)).toLowerCase();
  const domain = domainToASCII(written.slice(at + 1)).toLowerCase();
  if (!local.test(name) || name.length > local_chars_max) return null;
  const labels = domain.split(".");
  // An address of a machine in place of a name is none that a company gives its people.
  const isName = labels.length > 1 && labels.every((one) => label.test(one)) && !/^\d+$/.test(labels.at(-1)!);
  return isName && name.length + 1 + domain.length <= address_chars_max ? `${name}@${domain}` : null;
}

/** `domains`: the allowed ones, in ASCII without capital letters; none: all are. */
export function isAllowedAt(domains: readonly string[], address: string): boolean {
  return domains.length === 0 || domains.includes(address.slice(address.lastIndexOf("@") + 1));
}

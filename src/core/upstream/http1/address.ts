/** Addresses of this machine and of its link, to which a name must not resolve. Pure. */

/** Whether an IPv4 or IPv6 address is loopback, link-local or unspecified. */
export function isOwnAddress(address: string): boolean {
  const bytes = address.includes(":") ? bytesOf6(address) : bytesOf4(address);
  if (!bytes) return true;
  if (bytes.length === 4) return isOwn4(bytes);
  const isMapped = bytes.slice(0, 10).every((byte) => byte === 0) && bytes[10] === 255 && bytes[11] === 255;
  if (isMapped) return isOwn4(bytes.slice(12));
  const isLinkLocal = bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0x80;
  return isLinkLocal || (bytes.slice(0, 15).every((byte) => byte === 0) && bytes[15]! <= 1);
}

/** Whether the name itself stands for this machine, such as `localhost`. */
export function isOwnName(host: string): boolean {
  return host === "localhost" || host.endsWith(".localhost");
}

function isOwn4([first, second]: number[]): boolean {
  return first === 127 || first === 0 || (first === 169 && second === 254);
}

function bytesOf4(address: string): number[] | null {
  const bytes = address.split(".").map(Number);
  return bytes.length === 4 && bytes.every((byte) => byte >= 0 && byte <= 255) ? bytes : null;
}

function bytesOf6(address: string): number[] | null {
  const [withoutZone = ""] = address.split("%");
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(withoutZone);
  const last = dotted ? bytesOf4(dotted[2]!) : [];
  if (!last) return null;
  const [head = "", tail] = (dotted ? `${dotted[1]}`.replace(/([^:]):$/, "$1") : withoutZone).split("::");
  const groups = (text: string) =>
    (text === "" ? [] : text.split(":")).flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]);
  const front = groups(head);
  const back = tail === undefined ? last : [...groups(tail), ...last];
  const zeros = 16 - front.length - back.length;
  if (zeros < 0 || (tail === undefined && zeros > 0)) return null;
  const bytes = [...front, ...Array<number>(zeros).fill(0), ...back];
  return bytes.every((byte) => byte >= 0) ? bytes : null;
}

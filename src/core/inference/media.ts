/**
 * Refuses URLs of images that an engine may not fetch, because it fetches them from inside the operator's network. Only the
 * URL itself is judged. The engine has to guard against names that resolve to private addresses: docs/design/service.md,
 * Images by URL. Pure.
 *
 * Measures the images, files and audio of a request: their size on the wire, and an estimate of their tokens.
 */
import { Fault } from "./fault.ts";
import type { InferenceRequest } from "./request.ts";

export interface ImageSettings {
  /** Whether to refuse also addresses of private networks, and names that only exist there. */
  deny_private: boolean;
  /** Hosts that are refused, each with its subdomains. */
  denied_hosts: readonly string[];
}

/** Throws a Fault (400) for the first image whose URL may not be fetched. */
export function refuseImages(
  { turns, needs }: Pick<InferenceRequest, "turns" | "needs">,
  settings: ImageSettings,
): void {
  for (const { parts } of turns) {
    for (const part of parts) {
      const problem = part.kind === "image" ? imageUrlProblem(part.url, settings) : null;
      if (!problem) continue;
      // The request records the path of its first image only.
      const param = needs.find(({ capability }) => capability === "vision")?.param;
      const advice = "Send the image itself, as a data: URL, or name it by a public address.";
      throw new Fault(
        "invalid_value",
        `The URL of an image ${problem}. ${advice}`,
        param === undefined ? {} : { param },
      );
    }
  }
}

/** The reason to refuse a URL, which completes "The URL of an image …"; null if there is none. */
export function imageUrlProblem(text: string, { deny_private, denied_hosts }: ImageSettings): string | null {
  if (/^data:/i.test(text)) return null;
  // URL parsers differ in the characters that they skip, or treat as a slash.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\x00-\x20\x7f-\xa0\\]/.test(text)) return "holds a control character, a space or a backslash";
  const url = URL.parse(text);
  if (!url?.hostname) return "is not one that can be fetched";
  if (url.username || url.password || /^[^:]+:\/\/[^/?#]*@/.test(text)) return "holds a user name";
  const host = url.hostname.replace(/\.$/, "");
  if (isLocal(host) || (deny_private && isPrivate(host))) return "leads to an address that is not public";
  if (denied_hosts.some((denied) => host === denied || host.endsWith(`.${denied}`)))
    return "leads to a host that is not allowed";
  return null;
}

const localNames = /^(.+\.)?localhost$|^(.+\.)?metadata(\.google\.internal|\.goog)?$|^instance-data(\.ec2\.internal)?$/;
/** The unspecified, loopback and link-local addresses, and the addresses at which clouds serve credentials. */
const localRanges = ["0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32"].map(
  rangeOf,
);
const privateNames = /\.(internal|local|lan|intranet|corp|home\.arpa)$/;
const privateRanges = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"].map(rangeOf);

function isLocal(host: string): boolean {
  const address = ipv4Of(host);
  if (address !== null) return localRanges.some((range) => range(address));
  return localNames.test(host) || /^\[(::1?|fe[89ab][0-9a-f]:.*|fd00:ec2::254)\]$/.test(host);
}

/** Whether a host belongs to a private network. A name without a dot can only be in the engine's own network. */
function isPrivate(host: string): boolean {
  const address = ipv4Of(host);
  if (address !== null) return privateRanges.some((range) => range(address));
  if (host.startsWith("[")) return /^\[f[cd]/.test(host);
  return privateNames.test(host) || !host.includes(".");
}

/**
 * The IPv4 address in a host, also inside an IPv6 address; null if there is none. The URL parser has normalized other
 * spellings.
 */
function ipv4Of(host: string): number | null {
  const dotted = /^(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(host);
  if (dotted) return numberOf(dotted.slice(1).map(Number));
  const carried = /^\[(?:::ffff:|::ffff:0:|64:ff9b::|::)([0-9a-f]{1,4}):([0-9a-f]{1,4})\]$/.exec(host);
  return carried ? Number.parseInt(carried[1]!, 16) * 65_536 + Number.parseInt(carried[2]!, 16) : null;
}

function numberOf(bytes: readonly number[]): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0);
}

function rangeOf(cidr: string): (address: number) => boolean {
  const [base = "", bits] = cidr.split("/");
  const size = 2 ** (32 - Number(bits));
  const first = numberOf(base.split(".").map(Number));
  return (address) => address >= first && address < first + size;
}

/**
 * The number of tokens that a large image takes on most engines. Files and audio are estimated from their size in
 * base64.
 */
export const imageTokens = 1600;
const fileBytesPerToken = 16;
const audioBytesPerToken = 256;

export interface Media {
  bytes: number;
  tokens: number;
}

export function mediaOf(request: Pick<InferenceRequest, "turns">): Media {
  let bytes = 0;
  let tokens = 0;
  for (const turn of request.turns) {
    for (const part of turn.parts) {
      if (part.kind === "image") {
        bytes += part.url.length;
        tokens += imageTokens;
      } else if (part.kind === "file") {
        bytes += part.data.length;
        tokens += Math.ceil(part.data.length / fileBytesPerToken);
      } else if (part.kind === "audio") {
        bytes += part.data.length;
        tokens += Math.ceil(part.data.length / audioBytesPerToken);
      }
    }
  }
  return { bytes, tokens };
}

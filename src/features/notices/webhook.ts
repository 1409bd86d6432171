/**
 * Makes one attempt to send a notice to a webhook (docs/notices.md): signed, with a short time limit, and only to
 * public addresses unless the settings allow private ones.
 */
import { lookup } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import { BlockList, isIP } from "node:net";

export interface WebhookRequest {
  url: string;
  body: string;
  headers: Record<string, string>;
}

export interface WebhookSettings {
  /** Whether plain HTTP is allowed, and so are loopback, link-local and private addresses. */
  allowPrivate: boolean;
  /** The time limit for name resolution, connection and response together. */
  wait_ms: number;
}

/** The signature header: `sha256=…`, an HMAC over the timestamp of the attempt (in seconds), a dot, and the body. */
export function signatureOf(secret: string, timestamp: string, body: string): string {
  return `sha256=${new Bun.CryptoHasher("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}

/**
 * Sends the notice. Returns null if it was accepted, else one line that says what went wrong. Never throws. `look`
 * resolves a host name to addresses.
 */
export async function sendWebhook(
  request: WebhookRequest,
  settings: WebhookSettings,
  look: (host: string) => Promise<string[]> = namesOf,
): Promise<string | null> {
  const signal = AbortSignal.timeout(settings.wait_ms);
  try {
    const url = new URL(request.url);
    const problem = webhookUrlProblem(url, settings.allowPrivate);
    if (problem) return problem;
    const host = url.hostname.replace(/^\[|\]$/g, "");
    const found = isIP(host) ? [host] : await Promise.race([look(host), failing(signal)]);
    const address = settings.allowPrivate ? found[0] : found.every(isPublicAddress) ? found[0] : undefined;
    if (address === undefined) return "its name leads to an address that is not public";
    const status = await posted(url, address, request, signal);
    return status >= 200 && status < 300 ? null : `it answered ${status}`;
  } catch (cause) {
    if (signal.aborted) return `it did not answer within ${settings.wait_ms / 1000} s`;
    return `it cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`.slice(0, 300);
  }
}

/** The reason why a URL is not allowed, before its name is resolved; null if it is allowed. Pure. */
export function webhookUrlProblem(url: URL, allowPrivate: boolean): string | null {
  if (url.username || url.password) return "its URL holds a user name";
  if (url.protocol !== "https:" && url.protocol !== "http:") return "its URL does not begin with https://";
  if (url.protocol === "http:" && !allowPrivate) return "its URL does not begin with https://";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const isLocal = isIP(host) ? !isPublicAddress(host) : /(^|\.)localhost\.?$/.test(host);
  return isLocal && !allowPrivate ? "its URL leads to an address that is not public" : null;
}

/**
 * Whether an address is public. IPv6 addresses that contain an IPv4 address count as private: no public service uses
 * them. Pure.
 */
export function isPublicAddress(address: string): boolean {
  return isIP(address) === 6 ? !inside6.check(address.split("%")[0]!, "ipv6") : !inside4.check(address, "ipv4");
}

// There are two lists, because in a single list the IPv6 network of IPv4-mapped addresses would match every IPv4
// address.
const inside4 = new BlockList();
const inside6 = new BlockList();
for (const [network, bits] of [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["168.63.129.16", 32],
  ["224.0.0.0", 3],
] as const)
  inside4.addSubnet(network, bits, "ipv4");
for (const [network, bits] of [
  ["::", 96],
  ["::ffff:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
  ["fc00::", 7],
  ["fe80::", 10],
  ["fec0::", 10],
  ["ff00::", 8],
] as const)
  inside6.addSubnet(network, bits, "ipv6");

async function namesOf(host: string): Promise<string[]> {
  return (await lookup(host, { all: true })).map(({ address }) => address);
}

function failing(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
}

/**
 * Posts to the checked address, without resolving the name again. The response's body is not read, and redirects are
 * not followed.
 */
function posted(url: URL, address: string, { body, headers }: WebhookRequest, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const family = isIP(address);
    const asked = (url.protocol === "https:" ? https : http).request(
      url,
      {
        method: "POST",
        agent: false,
        signal,
        maxHeaderSize: 16_384,
        headers: { ...headers, "content-length": Buffer.byteLength(body), connection: "close" },
        lookup: (_host, options, done) =>
          options.all ? done(null, [{ address, family }]) : done(null, address, family),
      },
      (answer) => {
        resolve(answer.statusCode ?? 0);
        answer.destroy();
      },
    );
    asked.on("error", reject);
    asked.end(body);
  });
}

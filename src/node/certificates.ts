/** Collects all certificates that a node presents, or that its peers present to it, for `sluice doctor`. */
import { isIP } from "node:net";
import { connect } from "node:tls";
import type { SeenCertificate } from "../admin/cli/certificates.ts";
import { described, readCertificates, tlsTexts } from "../config/certificate.ts";
import type { Configuration } from "../config/configuration.ts";
import { readFileBounded } from "../config/source.ts";
import type { Upstream } from "../core/upstream/target.ts";

const connect_ms = 5000;

/**
 * The certificates of a configuration. A certificate that cannot be read or reached is left out: other checks of the
 * doctor report that.
 */
export async function certificatesOf(configuration: Configuration): Promise<SeenCertificate[]> {
  const { server, storage, upstreams } = configuration;
  const { databaseUrl, redisUrl, redisTls } = storage;
  // If `host` is an address, it says where the server listens, and seldom by which name clients call it.
  const host = isIP(server.host) || server.host === "localhost" ? null : server.host;
  const files = [
    fileSeen("of this server", server.tls?.certificateFile, host),
    fileSeen("for Redis", redisTls?.identity?.certificateFile, null),
    ...forEngines(upstreams),
  ];
  const peers = [
    ...upstreams.map(({ name, url }) => ({ whose: `of engine ${name}`, url })),
    ...publicAddresses(configuration),
  ]
    .filter(({ url }) => url.startsWith("https:"))
    .map(({ whose, url }) => peerSeen(whose, url, 443, {}));
  if (redisUrl && /^rediss:/i.test(redisUrl)) {
    peers.push(peerSeen("of Redis", redisUrl, 6379, tlsTexts(redisTls, readFileBounded)()));
  }
  if (databaseUrl) {
    const { clientCertificateFile, presented } = await import("../stores/postgres/presented.ts");
    files.push(fileSeen("for the database", clientCertificateFile(databaseUrl) ?? undefined, null));
    peers.push(
      presented(databaseUrl, connect_ms).then((one) => one && seen("of the database", one.host, one.certificate)),
    );
  }
  return [...files, ...(await Promise.all(peers))].filter((one) => one !== null);
}

/** The certificates that are shown to engines. The replicas of an upstream are shown the same. */
function forEngines(upstreams: readonly Upstream[]): SeenCertificate[] {
  const byName = new Map(upstreams.map(({ name, tls }) => [name, tls?.certificate?.cert]));
  return [...byName].flatMap(([name, cert]) => (cert === undefined ? [] : [seen(`for engine ${name}`, null, cert)]));
}

/** The addresses at which people reach the service and the console, whose certificates may be those of a proxy. */
function publicAddresses({ identity }: Configuration): { whose: string; url: string }[] {
  return Object.entries({ service_url: identity?.serviceUrl, console_url: identity?.consoleUrl }).flatMap(
    ([name, url]) => (url ? [{ whose: `of identity.${name}`, url }] : []),
  );
}

function seen(whose: string, host: string | null, certificate: string | Uint8Array): SeenCertificate {
  return { whose, host, ...described(certificate) };
}

function fileSeen(whose: string, file: string | undefined, host: string | null): SeenCertificate | null {
  const read = file === undefined ? null : readCertificates(file, readFileBounded);
  return read && "text" in read ? seen(whose, host, read.text) : null;
}

/** The certificate of a peer, trusted or not. Nothing is sent to the peer. */
function peerSeen(whose: string, url: string, usualPort: number, own: object): Promise<SeenCertificate | null> {
  const { hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, "");
  const named = isIP(host) ? {} : { servername: host };
  const { promise, resolve } = Promise.withResolvers<SeenCertificate | null>();
  const socket = connect({
    host,
    port: Number(port || usualPort),
    ...named,
    rejectUnauthorized: false,
    ...own,
  });
  const end = (found: SeenCertificate | null) => {
    socket.destroy();
    resolve(found);
  };
  socket.setTimeout(connect_ms, () => end(null));
  socket.once("error", () => end(null));
  socket.once("secureConnect", () => {
    const { raw } = socket.getPeerCertificate();
    end(raw ? seen(whose, host, raw) : null);
  });
  return promise;
}

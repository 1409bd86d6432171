/**
 * The encryption of connections to Postgres, by libpq's options and rules (docs/design/service.md, TLS). The files are
 * read for each connection, so that a renewed certificate needs no restart.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { isIP, type Socket } from "node:net";
import { checkServerIdentity, connect, type TLSSocket } from "node:tls";

const modes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const;
type Mode = (typeof modes)[number];

export interface Security {
  mode: Mode;
  /** The trusted authorities: those in a file, or the system's. Null: the server's identity is not checked. */
  authorities: { file: string } | "system" | null;
  /** The files of the client's certificate and key, in PEM. */
  certificate: { file: string; keyFile: string } | null;
}

/** Options of libpq that this client does not support. Ignoring one would be less safe than the address asks for. */
const unsupported = [
  ...["sslcrl", "sslcrldir", "sslpassword", "sslnegotiation", "sslcertmode", "requiressl", "sslsni"],
  ...["ssl_min_protocol_version", "ssl_max_protocol_version"],
];

/**
 * The security that an address asks for. `take` removes an option from the address and returns it; `refuse` throws. The
 * files are read once, to find mistakes.
 */
export function securityOf(take: (option: string) => string | undefined, refuse: (why: string) => never): Security {
  for (const option of unsupported) {
    if (take(option) !== undefined) refuse(`the option ${option} is not supported; remove it`);
  }
  const sslmode = take("sslmode");
  if (sslmode !== undefined && !isMode(sslmode)) return refuse(`its sslmode is none of ${modes.join(", ")}`);
  const root = take("sslrootcert");
  const [file, keyFile] = [take("sslcert"), take("sslkey")];
  if ((file === undefined) !== (keyFile === undefined)) refuse("sslcert and sslkey belong together; give both");
  const security: Security = {
    mode: modeOf(sslmode, root),
    authorities: root === undefined ? null : root === "system" ? root : { file: root },
    certificate: file !== undefined && keyFile !== undefined ? { file, keyFile } : null,
  };
  const { mode, authorities } = security;
  if (authorities === "system" && mode !== "verify-full") refuse("sslrootcert=system needs sslmode=verify-full");
  if (mode.startsWith("verify-") && authorities === null) {
    refuse(`sslmode=${mode} needs sslrootcert: a file with the authority's certificate, or system (with verify-full)`);
  }
  if (mode !== "disable") filesOf(security, refuse);
  return security;
}

function isMode(text: string): text is Mode {
  return (modes as readonly string[]).includes(text);
}

/**
 * The `sslmode` in force. As in libpq, authorities turn `require` into `verify-ca`; unlike in libpq, also if no mode is
 * given.
 */
function modeOf(sslmode: Mode | undefined, root: string | undefined): Mode {
  if (root === undefined) return sslmode ?? "prefer";
  if (sslmode === "require" && root !== "system") return "verify-ca";
  return sslmode ?? (root === "system" ? "verify-full" : "verify-ca");
}

function filesOf({ authorities, certificate }: Security, refuse: (why: string) => never) {
  const read = (option: string, file: string): string => {
    let text = "";
    try {
      text = readFileSync(file, "utf8");
    } catch {
      refuse(`its ${option} cannot be read: ${file}`);
    }
    return text.includes("-----BEGIN ") ? text : refuse(`its ${option} is not in PEM: ${file}`);
  };
  return {
    ...(authorities !== null && authorities !== "system" ? { ca: read("sslrootcert", authorities.file) } : {}),
    ...(certificate ? { cert: read("sslcert", certificate.file), key: read("sslkey", certificate.keyFile) } : {}),
  };
}

const request = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

/**
 * The socket to continue on, encrypted if the server and the mode allow it. Throws an Error whose message begins with a
 * verb, to which the caller adds the server's name.
 */
export async function secured(socket: Socket, host: string, security: Security): Promise<Socket> {
  if (security.mode === "disable") return socket;
  const files = filesOf(security, (why) => {
    throw new Error(`cannot be asked: ${why}`);
  });
  socket.write(request);
  const [answer] = (await Promise.race([once(socket, "data"), ended(socket)])) as [Buffer];
  // Bytes after the answer were not encrypted: somebody else may have inserted them (CVE-2021-23222).
  if (answer.length !== 1) throw new Error("does not answer as Postgres does");
  if (answer[0] === 0x4e) {
    if (security.mode === "prefer" || security.mode === "allow") return socket;
    throw new Error(`does not offer TLS, which sslmode=${security.mode} asks for`);
  }
  if (answer[0] !== 0x53) throw new Error("does not answer as Postgres does");
  const named = isIP(host) ? {} : { servername: host };
  // The identity is checked below, because not every mode requires the name, and a refusal should say why.
  const mine = { rejectUnauthorized: false, checkServerIdentity: () => undefined };
  const secure = connect({ socket, ...mine, ...named, ...files });
  await Promise.race([once(secure, "secureConnect"), ended(secure)]);
  const why = whyUntrusted(secure, host, security);
  if (why !== null) {
    secure.destroy();
    throw new Error(why);
  }
  return secure;
}

/** Thrown if the connection was lost while TLS began, as happens with a proxy whose server does not run yet. */
export class LostConnection extends Error {}

async function ended(socket: Socket): Promise<never> {
  const code = await once(socket, "close").then(
    () => null,
    (error: NodeJS.ErrnoException) => error.code,
  );
  const why = `broke off while TLS began${code ? ` (${code})` : ""}`;
  throw code?.startsWith("ERR_") ? new Error(why) : new LostConnection(why);
}

/** The reason not to trust the server; null if it is trusted. */
function whyUntrusted(secure: TLSSocket, host: string, { mode, authorities }: Security): string | null {
  if (authorities === null) return null;
  if (!secure.authorized) {
    return `has a certificate that the authorities of sslrootcert do not vouch for (${secure.authorizationError})`;
  }
  if (mode !== "verify-full") return null;
  const mismatch = checkServerIdentity(host, secure.getPeerCertificate());
  return mismatch ? "has a certificate for another name, which sslmode=verify-full does not accept" : null;
}

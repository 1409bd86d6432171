// Sends forged tokens of an issuer, each a different one, from 40 addresses: `bun test/attacks/token-flood.ts URL
// CONNECTIONS ISSUER KID`, until it is killed. It is a separate process, like flood.ts. The tokens have the `kid` of a
// key of the issuer and the signature of another key. The node must trust 127.0.0.1 as a proxy.

import { SignJWT } from "jose";
import { issuerKey } from "../harness/issuer.ts";
import { flood } from "./flood.ts";
import { headOf } from "./talk.ts";

const addresses = 40;
const [url = "", connections = "400", issuer = "", kid = ""] = process.argv.slice(2);
const { privateKey } = await issuerKey();
const seconds = Math.floor(Date.now() / 1000);
const claims = { iss: issuer, aud: "sluice-api", iat: seconds, exp: seconds + 3600 };
const [head, , signature] = (
  await new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid, typ: "at+jwt" }).sign(privateKey)
).split(".");
let count = 0;

function withForgedToken(at: number): string {
  const payload = Buffer.from(JSON.stringify({ ...claims, sub: `somebody ${count++}` })).toString("base64url");
  const address = `x-forwarded-for: 198.51.100.${at % addresses}`;
  return headOf("GET /v1/models", `${head}.${payload}.${signature}`, address);
}

const { answered } = await flood(url, Number(connections), withForgedToken);
setInterval(() => console.log(JSON.stringify(Object.fromEntries(answered))), 1000);

// Cookies of browsers, depending on the console's URL: which other hosts of the domain, and which ports, can set or
// read them.
import { expect, test } from "bun:test";
import { cookieIn, endCookie, setCookie } from "../../../src/admin/people/cookies.ts";

const secure = { name: "sluice-console", origin: "https://console.sluice.example" };
const loopback = { name: "sluice-console", origin: "http://127.0.0.1:8082" };
const sent = (cookie: string) => new Headers({ cookie });

test("with HTTPS, a cookie is for this host alone, opaque to scripts, and goes over HTTPS alone", () => {
  expect(setCookie(secure, "v")).toBe("__Host-sluice-console=v; Path=/; HttpOnly; SameSite=Lax; Secure");
  expect(setCookie(secure, "v", 600)).toEndWith("; Secure; Max-Age=600");
  expect(endCookie(secure)).toBe("__Host-sluice-console=; Path=/; HttpOnly; SameSite=Lax; Secure; Max-Age=0");
  for (const text of [setCookie(secure, "v"), setCookie(loopback, "v")]) expect(text).not.toContain("Domain");
});

test("on plain HTTP, which is of this machine alone, it has neither the prefix nor Secure", () => {
  expect(setCookie(loopback, "v")).toBe("sluice-console=v; Path=/; HttpOnly; SameSite=Lax");
});

test("one that another host of the domain could have set is none: without the prefix, or a second of the name", () => {
  expect(cookieIn(sent("a=b; __Host-sluice-console=v"), secure)).toBe("v");
  expect(cookieIn(sent("sluice-console=v"), secure)).toBeNull();
  expect(cookieIn(sent("__Host-sluice-console=v; __Host-sluice-console=w"), secure)).toBeNull();
  expect(cookieIn(sent("sluice-console=v; sluice-console=w"), loopback)).toBeNull();
  expect(cookieIn(new Headers(), loopback)).toBeNull();
});

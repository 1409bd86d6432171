// The URL of a database is parsed as libpq parses it, and no error message shows the password in it.

import { describe, expect, test } from "bun:test";
import { addressOf } from "../../../src/stores/postgres/address.ts";
import { serverDatabase } from "../../../src/stores/postgres/server.ts";

const secret = "hunter2";

describe("an address", () => {
  test("is taken apart, escapes undone", () => {
    const { places, login, settings, label } = addressOf("postgres://ann%40x:p%3Aw%2F@db.example:6543/my%20db");
    expect(login).toEqual({ user: "ann@x", password: "p:w/", database: "my db" });
    expect(places).toEqual([{ host: "db.example", port: 6543, label: "db.example:6543" }]);
    expect(settings).toEqual({});
    expect(label).toBe("db.example:6543/my db");
  });

  test("may leave out what has a default", () => {
    expect(addressOf("postgresql://").label).toBe("localhost:5432/");
    expect(addressOf("postgres://localhost/sluice").login).toEqual({ database: "sluice" });
    expect(addressOf("  postgres://localhost/sluice\n").label).toBe("localhost:5432/sluice");
  });

  test("may name several hosts, an IPv6 host, or a socket's folder", () => {
    expect(addressOf("postgres://a:1,b,c:3/d").label).toBe("a:1,b:5432,c:3/d");
    expect(addressOf("postgres://u@[::1]:5433/d").places).toMatchObject([{ host: "::1", port: 5433 }]);
    const path = "/run/postgresql/.s.PGSQL.5432";
    expect(addressOf("postgres:///d?host=/run/postgresql").places).toEqual([{ path, label: path }]);
  });

  test("takes libpq's options: what the driver knows, what the session takes, what means nothing here", () => {
    const url = "postgres://h/d?sslmode=require&channel_binding=require&application_name=mine&search_path=x";
    const { security, settings } = addressOf(url);
    expect(security).toEqual({ mode: "require", authorities: null, certificate: null });
    expect(settings).toEqual({ application_name: "mine", search_path: "x" });
  });

  test("is private by libpq's rules", () => {
    const mode = (query: string) => addressOf(`postgres://h/d${query}`).security;
    expect(mode("")).toMatchObject({ mode: "prefer", authorities: null });
    expect(mode("?sslmode=disable&sslrootcert=/nowhere.pem")).toMatchObject({ mode: "disable" });
    expect(mode("?sslrootcert=system")).toMatchObject({ mode: "verify-full", authorities: "system" });
  });

  test("may say that any kind of server will do", () => {
    expect(addressOf("postgres://a,b/d?target_session_attrs=any").login).toEqual({ database: "d" });
  });

  const bad = {
    empty: "",
    "of another kind": `mysql://ann:${secret}@h/d`,
    "without its form": `ann:${secret}@h/d`,
    "with a bare percent sign": `postgres://ann:${secret}%zz@h/d`,
    "with a bare slash in the password": `postgres://ann:${secret}/x@h/d`,
    "with a bare at sign in the password": `postgres://ann:${secret}@x@h/d`,
    "with a bare slash after a number": `postgres://ann:12345/x${secret}@h/d`,
    "with a port that is none": `postgres://ann:${secret}@h:99999/d`,
    "with a space in the host": `postgres://ann:${secret}@h h/d`,
    "with an unknown kind of server": `postgres://ann:${secret}@h/d?target_session_attrs=leader`,
    "with an unknown sslmode": `postgres://ann:${secret}@h/d?sslmode=maybe`,
    "with verify-full and no authorities": `postgres://ann:${secret}@h/d?sslmode=verify-full`,
    "with verify-ca and the system's": `postgres://ann:${secret}@h/d?sslmode=verify-ca&sslrootcert=system`,
    "with half of a client certificate": `postgres://ann:${secret}@h/d?sslcert=/nowhere.pem`,
    "with a list of revocations": `postgres://ann:${secret}@h/d?sslcrl=/nowhere.pem`,
    "with a certificate that is no PEM": `postgres://ann:${secret}@h/d?sslrootcert=${import.meta.path}`,
    "with a certificate that is not there": `postgres://ann:${secret}@h/d?sslrootcert=/nowhere.pem`,
  };
  for (const [how, url] of Object.entries(bad)) {
    test(`${how} is refused with a sentence that shows no password`, async () => {
      const error = await serverDatabase(url).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: "DatabaseError", code: "address" });
      expect(Bun.inspect(error)).toContain("DATABASE_URL");
      expect(Bun.inspect(error)).not.toContain(secret);
    });
  }
});

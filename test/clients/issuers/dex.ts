// Starts Dex, with its users in its own configuration file, and the rest of its data in Postgres. A change or removal
// of a user takes effect after a restart.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse, stringify } from "yaml";
import { type Daemon, freePort, serviceFolder, startDaemon } from "../../harness/daemon.ts";
import { freshDatabase } from "../../harness/services.ts";
import { type Addresses, clientSecret, consented, mailOf, password, type RealIssuer, recipe, staff } from "./issuer.ts";

export async function startDex(program: string, addresses: Addresses): Promise<RealIssuer> {
  const port = await freePort();
  const issuer = `http://127.0.0.1:${port}/dex`;
  const how = { ...addresses, issuer };
  const people = new Map(Object.entries(staff).map(([name, groups]) => [name, [...groups]]));
  const hash = await Bun.password.hash(password, { algorithm: "bcrypt", cost: 10 });
  const database = await freshDatabase();
  const { hostname: host, port: databasePort, pathname, username: user } = new URL(database.url);
  let daemon: Daemon;
  const start = async () => {
    const folder = serviceFolder("dex");
    const file = join(folder, "dex.yaml");
    const staticPasswords = [...people].map(([name, groups]) => ({
      ...{ email: mailOf(name), emailVerified: true, hash, username: name, name, userID: `id-of-${name}`, groups },
    }));
    const configuration = {
      issuer,
      // Postgres is used because this commit of Dex deadlocks at the first token refresh when it stores its data in
      // SQLite or in memory.
      storage: {
        type: "postgres",
        config: { host, port: Number(databasePort), database: pathname.slice(1), user, ssl: { mode: "disable" } },
      },
      web: { http: `127.0.0.1:${port}` },
      enablePasswordDB: true,
      staticPasswords,
      ...(parse(recipe("Dex", "staticClients:", how)) as object),
    };
    writeFileSync(file, stringify(configuration), { mode: 0o644 });
    daemon = await startDaemon({
      name: "dex",
      command: [program, "serve", file],
      environment: { OIDC_CLIENT_SECRET: clientSecret },
      folder,
      ready: () => answers(`${issuer}/.well-known/openid-configuration`),
      deadline_ms: 60_000,
    });
  };
  const changed = async (change: () => void) => {
    await daemon.stop();
    change();
    await start();
  };
  await start();
  return {
    issuer,
    lines: recipe("Dex", "client_id:", how),
    async signIn(page, name) {
      await page.fill("#login", mailOf(name));
      await page.fill("#password", password);
      await page.click("#submit-login");
      await consented(page, page.getByRole("button", { name: "Grant Access" }), issuer);
    },
    async signOut() {},
    setGroups: (name, groups) => changed(() => people.set(name, groups)),
    disable: (name) => changed(() => people.delete(name)),
    async [Symbol.asyncDispose]() {
      await daemon.stop();
      await database.drop();
    },
  };
}

export function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** The default port of the console, if none is configured. */
import { expect, test } from "bun:test";
import { freePort } from "../harness/daemon.ts";
import { startSluice } from "../harness/sluice.ts";

test("an engine of this machine keeps its port, even if it does not run yet", async () => {
  const consolePort = async (engine: string) => {
    const port = await freePort();
    const url = engine.replace("NEXT", String(port + 1));
    const sluice = await startSluice({
      store: "pglite",
      env: { PORT: String(port), SLUICE_UPSTREAM_URL: url, SLUICE_UPSTREAM_MODEL: "m" },
    });
    const link = (await sluice.json<{ url: string }>("console")).url;
    await sluice.stop();
    return Number(new URL(link).port) - port;
  };
  expect(await consolePort("http://[::1]:NEXT/v1")).not.toBe(1);
  expect(await consolePort("http://10.255.0.1:NEXT/v1")).toBe(1);
}, 60_000);

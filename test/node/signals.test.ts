/** Signals to stop a node: the first one makes it drain, the second one makes it stop without waiting. */
import { afterEach, expect, test } from "bun:test";
import { processSignals } from "../../src/node/signals.ts";

afterEach(() => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.removeAllListeners(signal);
});

test("one Ctrl-C is one signal, although npm passes it on a second time; the next one is another", async () => {
  let now_ms = 1_000;
  const { stopAsked } = processSignals(() => now_ms);
  const interrupted = () => void process.emit("SIGINT", "SIGINT");
  const first = stopAsked();
  interrupted();
  expect(await first).toBe("SIGINT");
  let isHurried = false;
  const second = stopAsked().then(() => {
    isHurried = true;
  });
  now_ms += 150;
  interrupted();
  await Bun.sleep(0);
  expect(isHurried).toBe(false);
  now_ms += 100;
  interrupted();
  await second;
  expect(isHurried).toBe(true);
});

test("after SIGTERM, one Ctrl-C is the second signal", async () => {
  const { stopAsked } = processSignals();
  const first = stopAsked();
  process.emit("SIGTERM", "SIGTERM");
  expect(await first).toBe("SIGTERM");
  const second = stopAsked();
  process.emit("SIGINT", "SIGINT");
  expect(await second).toBe("SIGINT");
});

test("npm's signal does not end a process that does not listen again yet; a person's second Ctrl-C does", async () => {
  const script = `
    import { processSignals } from ${JSON.stringify(`${import.meta.dir}/../../src/node/signals.ts`)};
    let now_ms = 1_000;
    const { stopAsked } = processSignals(() => now_ms);
    const goOn = new Promise((resolve) => process.once("SIGUSR2", resolve));
    const first = stopAsked();
    process.kill(process.pid, "SIGINT");
    await first;
    process.kill(process.pid, "SIGINT");
    console.log("alive");
    setTimeout(() => {}, 60_000);
    await goOn;
    now_ms += 300;
    process.kill(process.pid, "SIGINT");
  `;
  const child = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toBe("alive\n");
  child.kill("SIGUSR2");
  await child.exited;
  expect(String(child.signalCode)).toBe("SIGINT");
}, 60_000);

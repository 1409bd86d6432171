/** Signals to stop: the first one drains, the second one no longer waits. */
import { expect, test } from "bun:test";
import { processSignals } from "../../src/node/signals.ts";

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

/** The executable serves with the collector's options set, whatever it is started with. Record: 2026-11-22-heap-growth. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { collectorOptions, withCollectorOptions } from "../src/collector-options.ts";

test("what is missing is added, once", () => {
  const added = withCollectorOptions({ PATH: "/bin", EMPTY: "", NONE: undefined })!;
  expect(added).toEqual({ PATH: "/bin", EMPTY: "", NONE: undefined, ...collectorOptions });
  expect(withCollectorOptions(added)).toBeNull();
});

test("what the operator has set is kept", () => {
  const [first] = Object.keys(collectorOptions);
  expect(withCollectorOptions({ [first!]: "3" })).toEqual({ ...collectorOptions, [first!]: "3" });
});

test("the runtime knows each of them: one that it doesn't know would end it at once", async () => {
  const child = Bun.spawn([process.execPath, "-e", "0"], {
    env: { ...process.env, ...collectorOptions, BUN_JSC_dumpOptions: "2" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const said = (await Promise.all([child.stdout.text(), child.stderr.text()])).join("");
  expect(await child.exited).toBe(0);
  for (const [name, value] of Object.entries(collectorOptions))
    expect(said).toContain(`${name.replace("BUN_JSC_", "")}=${value}`);
});

/** A program that starts itself anew as the executable does, and then tells what it is. */
const program = `import { startWithCollectorOptions } from "${import.meta.dir}/../src/collector-options.ts";
process.stderr.write("started ");
startWithCollectorOptions(process.env);
console.log(JSON.stringify({ pid: process.pid, words: process.argv.slice(2), environment: process.env }));
process.stdin.on("data", (text) => console.log(String(text)));`;

test("it goes on as the same process, with its words, its environment and its streams", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-restart-"));
  const file = join(folder, "program.ts");
  writeFileSync(file, program);
  const words = ["serve", "", "two words", "ümlaut", "--flag=1"];
  const environment = { PATH: process.env.PATH ?? "", EMPTY: "", LINES: "a\nb", EQUALS: "a=b" };
  const child = Bun.spawn([process.execPath, file, ...words], {
    ...{ env: environment, stdin: "pipe", stdout: "pipe", stderr: "pipe" },
  });
  child.stdin.write("heard");
  child.stdin.end();
  const [out, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect(await child.exited).toBe(0);
  const [told, heard] = out.trim().split("\n");
  expect(JSON.parse(told!)).toEqual({
    ...{ pid: child.pid, words },
    environment: process.platform === "linux" ? { ...environment, ...collectorOptions } : environment,
  });
  expect(heard).toBe("heard");
  expect(errors).toBe(process.platform === "linux" ? "started started " : "started ");
  rmSync(folder, { recursive: true });
});

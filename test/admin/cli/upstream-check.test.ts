/** The output of `sluice upstream check` for the simulator, which is configured as if it were an engine. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configured } from "../../config/reading.ts";
import { type Simulator, startSimulator } from "../../harness/simulator.ts";
import { shell } from "./shell.ts";

let simulator: Simulator;
beforeAll(async () => {
  simulator = await startSimulator({ models: ["acme/one"], key: "right", directives: "reasoning=3" });
});
afterAll(() => simulator.stop());

function at(text: string) {
  const path = join(mkdtempSync(join(tmpdir(), "sluice-check-")), "sluice.yaml");
  writeFileSync(path, text);
  return { path, ...shellAt(path) };
}

function shellAt(path: string) {
  const environment = { SLUICE_CONFIG: path };
  return shell({ environment, configuration: async () => configured(readFileSync(path, "utf8"), environment) });
}

const metering = "metering: { currency: USD }\n";
const upstream = (more = "") =>
  `# Ours.\nupstreams:\n  main:\n    url: ${simulator.url}   # here\n    api_key: right\n${more}`;

describe("sluice upstream check", () => {
  test("shows the difference, and writes it only if it is told to; a second time there is none", async () => {
    const { path, typed } = at(upstream());
    chmodSync(path, 0o640);
    const shown = await typed("upstream check main");
    expect(shown).toMatchObject({ code: 0, err: "" });
    expect(shown.out).toContain("+ models:");
    expect(shown.out).toContain("--write");
    expect(readFileSync(path, "utf8")).toBe(upstream());
    const written = JSON.parse((await typed("upstream check main --write --json")).out);
    expect(written).toMatchObject({ upstream: "main", model: "acme/one", protocol: "openai-chat", written: true });
    expect(written.findings.length).toBeGreaterThan(30);
    const text = readFileSync(path, "utf8");
    expect(text).toStartWith(upstream());
    expect(Bun.YAML.parse(text)).toMatchObject({ metering: { currency: "USD" } });
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect((await typed("upstream check main --write")).out).toContain("Nothing to add");
    expect(readFileSync(path, "utf8")).toBe(text);
  });

  test("leaves what the operator wrote, removes no capability, and says which the engine has not", async () => {
    const model = `models:
  - id: acme/one
    created: 1   # long ago
    context_window: 9000
    capabilities: [files, vision]   # mine
    bounds: specification
    prices: { input: 0.001, output: 0.001 }
    routes: [{ upstream: main, model: acme/one }]
`;
    const { path, typed } = at(upstream(`    dialect: deepseek\n    running_usage: "off"\n${metering}${model}`));
    const { code } = await typed("upstream check main --write --model acme/one");
    expect(code).toBe(0);
    const text = readFileSync(path, "utf8");
    expect(text).toMatch(/capabilities: \[files, vision, [a-z_, ]*reasoning[a-z_, ]*\] {3}# mine/);
    for (const kept of ["dialect: deepseek", 'running_usage: "off"', "bounds: specification", "# long ago"])
      expect(text).toContain(kept);
    expect(text).not.toContain("bounds: engine");
  });

  test("writes through a link", async () => {
    const { path } = at(upstream());
    const link = `${path}.link`;
    symlinkSync(path, link);
    expect((await shellAt(link).typed("upstream check main --write")).code).toBe(0);
    expect(readFileSync(path, "utf8")).toContain("bounds: engine");
  });

  test("says what is wrong with the name, the key and the address", async () => {
    const wrong = upstream().replace("right", "wrong");
    const silent = upstream().replace(simulator.url, "http://127.0.0.1:9/v1");
    const keyless = upstream().replace("    api_key: right\n", "");
    for (const [text, words, says] of [
      [keyless, "main", "needs a key. Set its api_key in sluice.yaml."],
      [upstream(), "other", "no upstream 'other'. Known are main."],
      [wrong, "main", "refuses the key"],
      [wrong, "main --model acme/one", "refuses the key (401)"],
      [silent, "main", "Nothing answers at http://127.0.0.1:9/v1"],
    ] as const) {
      const { code, err } = await at(text).typed(`upstream check ${words}`);
      expect([words, code, err]).toEqual([words, 1, expect.stringContaining(says)]);
    }
    expect(await at(upstream()).typed("upstream check")).toMatchObject({ code: 2, out: "" });
  });
});

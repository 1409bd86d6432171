/** The completion scripts: shells accept them, and they complete commands, options and names. */
import { expect, test } from "bun:test";
import { shell } from "./shell.ts";

async function completed(words: string[]): Promise<string[]> {
  const { out } = await shell().typed("completion bash");
  const asked = `${out}
COMP_WORDS=(sluice ${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length}; _sluice; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const child = Bun.spawn(["bash", "-c", asked], { stdout: "pipe", stderr: "pipe" });
  expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
  return (await child.stdout.text()).split("\n").filter(Boolean);
}

test("bash completes commands, what follows them, and their options", async () => {
  expect(await completed(["or"])).toEqual(["org"]);
  expect(await completed(["operator", ""])).toEqual(expect.arrayContaining(["create", "list", "rotate", "revoke"]));
  expect(await completed(["--json", "key", "create", "--sc"])).toEqual(["--scopes"]);
  expect(await completed(["org", "show", "acme", "--js"])).toEqual(["--json"]);
  expect(await completed(["nothing", "--"])).toEqual([]);
});

test("zsh and fish get every command; another shell is a usage error", async () => {
  for (const name of ["zsh", "fish"]) {
    const { out, code } = await shell().typed(`completion ${name}`);
    expect(code).toBe(0);
    for (const words of ['"org create"', '"usage adjust"', '"operator rotate"', '"apply"'])
      expect(out).toContain(words);
  }
  expect(await shell().typed("completion csh")).toMatchObject({ code: 2, out: "" });
});

// A user's machine that has only the command line: no service and no database, and a home directory of its own.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Browser } from "./browser.ts";
import type { PeopleNode } from "./people-node.ts";
import { shortLived } from "./short-lived.ts";
import { program } from "./sluice.ts";
import { until } from "./until.ts";

export interface Typed {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Laptop extends Disposable {
  folder: string;
  env: Record<string, string>;
  run(...words: string[]): Promise<Typed>;
  /** Returns the same machine with these environment variables added. */
  with(env: Record<string, string>): Laptop;
  typing(input: string): Laptop;
  signInFile(url: string): string;
  /** Runs `sluice login`, and approves it in a browser as the provider's current account. */
  signIn(node: PeopleNode): Promise<Typed>;
  /** Runs `sluice login`, and passes the code that it shows to `approve`. */
  signInBy(serviceUrl: string, approve: (code: string) => Promise<void>): Promise<Typed>;
}

export function laptop(): Laptop {
  const folder = mkdtempSync(join(tmpdir(), "sluice-laptop-"));
  // The tests must not use the key store of the user who runs them.
  return laptopIn(
    folder,
    { PATH: process.env.PATH ?? "", HOME: folder, SLUICE_TOKEN_STORE: "file", ...shortLived },
    "",
  );
}

function laptopIn(folder: string, env: Record<string, string>, input: string): Laptop {
  const started = (words: string[]) => {
    const stdin = input === "" ? "ignore" : new Blob([input]);
    return Bun.spawn([...program, ...words], { cwd: folder, env, stdin, stdout: "pipe", stderr: "pipe" });
  };
  const typed = async (child: ReturnType<typeof started>): Promise<Typed> => {
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, stdout, stderr };
  };
  return {
    folder,
    env,
    run: (...words) => typed(started(words)),
    with: (more) => laptopIn(folder, { ...env, ...more }, input),
    typing: (text) => laptopIn(folder, env, text),
    signInFile: (url) =>
      join(env.XDG_CONFIG_HOME ?? join(folder, ".config"), "sluice/sign-ins", `${encodeURIComponent(url)}.json`),
    signIn(node) {
      return this.signInBy(node.serviceUrl, (code) => approve(node, code));
    },
    async signInBy(serviceUrl, approved) {
      const child = started(["login", serviceUrl]);
      let stderr = "";
      const reading = (async () => {
        const decoder = new TextDecoder();
        for await (const chunk of child.stderr) stderr += decoder.decode(chunk, { stream: true });
      })();
      const code = () => /Code {2}(\S+)/.exec(stderr)?.[1];
      await until(() => code() !== undefined || child.exitCode !== null, 10_000, "the code");
      if (code() !== undefined) await approved(code()!);
      const [stdout, exitCode] = await Promise.all([child.stdout.text(), child.exited, reading]);
      return { code: exitCode, stdout, stderr };
    },
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** Approves a device code on the page for devices, as a person does who belongs to one organization only. */
export async function approve({ sluice, serviceUrl }: PeopleNode, code: string): Promise<void> {
  const browser = new Browser();
  const first = await browser.submit(await browser.visit(`${serviceUrl}/device?user_code=${code}`), "/device");
  const organizations = await sluice.json<{ id: string }[]>("org", "list");
  const organization = organizations[0]!.id;
  const page = await browser.submit(first, "/device/decision", { decision: "approve", organization });
  if (!page.text.includes("Approved")) throw new Error(`not approved: ${page.text}`);
}

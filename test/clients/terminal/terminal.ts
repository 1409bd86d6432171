// A terminal with a program in it, emulated by tmux so that tests can read its screen. If this machine has no tmux,
// Debian's package is unpacked.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debianProgram } from "../../harness/debian.ts";
import { CannotRun } from "../edition.ts";

export interface Terminal extends AsyncDisposable {
  /** The lines of the screen, without empty ones. */
  screen(): Promise<string>;
  /** Waits until the screen shows this text or a match of this pattern, and returns the screen. */
  shows(what: string | RegExp): Promise<string>;
  /** Moves the selection in a menu to this entry, and presses Enter. */
  choose(entry: string): Promise<void>;
  /** Types a line into the message field and sends it. */
  say(line: string): Promise<void>;
  press(key: string): Promise<void>;
  /** Presses Escape until the screen does not show this text any more. */
  leave(page: string): Promise<void>;
  /** Saves the screen to a file of this name. */
  keep(name: string): Promise<void>;
}

interface Options {
  cwd: string;
  env: Record<string, string>;
  /** The folder of the saved screens. */
  screens: string;
}

const shows_ms = 60_000;
const drawn_ms = 3000;
const look_ms = 150;

export async function openTerminal(command: string[], { cwd, env, screens }: Options): Promise<Terminal> {
  const tmux = await program();
  const folder = mkdtempSync(join(tmpdir(), "sluice-terminal-"));
  const script = join(folder, "start");
  const variables = { ...env, TERM: "xterm-256color", LANG: "C.UTF-8" };
  const words = ["env", "-i", ...Object.entries(variables).map(([name, value]) => `${name}=${value}`), ...command];
  // The command `cat` keeps the screen open when the program has ended.
  writeFileSync(script, `cd ${quoted(cwd)}\n${words.map(quoted).join(" ")}\necho "ended: $?"\nexec cat\n`);
  mkdirSync(screens, { recursive: true });
  const said = async (...words: string[]) => {
    const started = [tmux.path, "-S", join(folder, "socket"), "-f", "/dev/null", ...words];
    const child = Bun.spawn(started, { env: tmux.env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (code !== 0) throw new Error(`tmux ${words[0]}: ${err}`);
    return out;
  };
  await said("new-session", "-d", "-x", "120", "-y", "50", `sh ${quoted(script)}`);

  const screen = async () => (await said("capture-pane", "-p")).replaceAll("\u00a0", " ").replaceAll(/^\s*\n/gm, "");
  const press = async (key: string) => void (await said("send-keys", key));
  const isOn = (text: string, what: string | RegExp) =>
    typeof what === "string" ? text.includes(what) : what.test(text);
  const isOnScreen = async (what: string | RegExp) => isOn(await screen(), what);
  const isSteady = async (what: RegExp) => {
    for (let looks = 0; looks < 4; looks++) {
      if (!(await isOnScreen(what))) return false;
      await Bun.sleep(look_ms);
    }
    return true;
  };
  const shows = async (what: string | RegExp) => {
    if (await soon(() => isOnScreen(what), shows_ms)) return screen();
    throw new Error(`${what} does not show; there is:\n${await screen()}`);
  };
  return {
    screen,
    press,
    shows,
    async choose(entry) {
      const marked = new RegExp(`❯ .*${RegExp.escape(entry)}`);
      await shows(entry);
      // A menu that has just been drawn may lose a key press or react late, so after each key press the screen is
      // checked again.
      for (let presses = 0; !(await isSteady(marked)); presses++) {
        if (presses > 10) throw new Error(`${entry} cannot be reached:\n${await screen()}`);
        await press("Down");
        await soon(() => isOnScreen(marked));
      }
      await press("Enter");
    },
    async say(line) {
      const written = new RegExp(`^❯ ${RegExp.escape(line)}$`, "m");
      // A field that has just been drawn may lose characters.
      for (let times = 0; !written.test(await screen()); times++) {
        if (times > 5) throw new Error(`'${line}' cannot be written:\n${await screen()}`);
        await press("C-u");
        await said("send-keys", "-l", line);
        await soon(() => isOnScreen(written));
      }
      await press("Enter");
    },
    async leave(page) {
      for (let times = 0; await isOnScreen(page); times++) {
        if (times > 5) throw new Error(`This page stays:\n${await screen()}`);
        await press("Escape");
        await soon(async () => !(await isOnScreen(page)));
      }
    },
    keep: async (name) => writeFileSync(join(screens, `${name}.txt`), await screen()),
    async [Symbol.asyncDispose]() {
      await said("kill-server").catch(() => undefined);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function program() {
  const here = Bun.which("tmux");
  if (here !== null) return { path: here, env: process.env };
  try {
    return await debianProgram("tmux", { package: "tmux", folder: "usr/bin" });
  } catch (cause) {
    throw new CannotRun(
      `There is no tmux here, and it cannot be had: ${cause instanceof Error ? cause.message : cause}`,
    );
  }
}

/** Waits until the condition is true or the time limit passes. Returns whether it became true. */
async function soon(holds: () => Promise<boolean>, limit_ms = drawn_ms): Promise<boolean> {
  for (const until_ms = performance.now() + limit_ms; performance.now() < until_ms; await Bun.sleep(look_ms))
    if (await holds()) return true;
  return false;
}

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;

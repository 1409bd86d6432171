// A terminal with a program in it, as somebody sees it and types into it: a tmux server of its own.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../../harness/until.ts";

export interface TmuxTerminal extends Disposable {
  shown(): string;
  type(text: string): void;
  press(key: string): void;
  /** Waits until it shows this. */
  sees(what: RegExp, limit_ms?: number): Promise<string>;
  /** Moves the mark of a menu to this line, and takes it. */
  choose(line: RegExp): Promise<void>;
  /** Waits until the program is gone. */
  ends(): Promise<void>;
}

export const tmux = Bun.which("tmux");
const standard_ms = 30_000;
const most_moves = 10;

export function tmuxTerminal(folder: string, command: string, env: Record<string, string>): TmuxTerminal {
  const socket = join(folder, "tmux");
  const asked = (...words: string[]) => Bun.spawnSync([tmux ?? "tmux", "-S", socket, ...words], { env });
  const script = join(folder, "in-terminal.sh");
  const variables = Object.entries({ ...env, TERM: "xterm-256color", LANG: "C.UTF-8" });
  const exported = variables.map(([name, value]) => `export ${name}='${value.replaceAll("'", "'\\''")}'`);
  writeFileSync(script, [...exported, `cd '${folder}'`, `exec ${command}`].join("\n"));
  // Its server outlives the command, and would keep a pipe open.
  Bun.spawnSync([tmux ?? "tmux", "-S", socket, "new-session", "-d", "-x", "140", "-y", "45", "sh", script], {
    env,
    stdio: ["ignore", "ignore", "ignore"],
  });
  const shown = () => asked("capture-pane", "-p").stdout.toString();
  const press = (key: string) => void asked("send-keys", key);
  const sees = async (what: RegExp, limit_ms = standard_ms) => {
    await until(() => what.test(shown()), limit_ms, `${what} in the terminal`).catch((cause) => {
      throw new Error(`The terminal shows:\n${shown()}`, { cause });
    });
    return shown();
  };
  return {
    shown,
    press,
    sees,
    type: (text) => void asked("send-keys", "-l", text),
    async choose(line) {
      await sees(line);
      const isMarked = () =>
        shown()
          .split("\n")
          .some((one) => /❯/.test(one) && line.test(one));
      for (let moves = 0; moves < most_moves && !isMarked(); moves++) {
        const before = shown();
        press("Up");
        await until(() => shown() !== before, standard_ms, "the mark to move");
      }
      if (!isMarked()) throw new Error(`${line} cannot be chosen:\n${shown()}`);
      press("Enter");
    },
    ends: () => until(() => asked("has-session").exitCode !== 0, standard_ms, "the program to end"),
    [Symbol.dispose]: () => void asked("kill-server"),
  };
}

/**
 * The key store that a desktop unlocks with its user's session: on Linux a Secret Service, such as GNOME's keyring,
 * through `secret-tool`; on macOS the Keychain, through `security`. A secret is passed on standard input, since lists
 * of processes show arguments.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { oneLine } from "../terminal.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface KeyStore {
  /** The key store's name in a sentence, such as "the Keychain". */
  name: string;
  /** Stores the secret. `label`: the name of the entry that the user sees in the key store. */
  put(id: string, label: string, secret: string): Promise<void>;
  /** Returns the secret; null: the key store has no such entry. */
  get(id: string): Promise<string | null>;
  /** Removes the entry. A missing entry is no error. */
  remove(id: string): Promise<void>;
}

/** Thrown if the key store exists but fails; it may be locked. */
export class KeyStoreAway extends Error {}

/** The time limit of a call: long enough for the user to type a password that the key store asks for. */
const call_ms = 20_000;

/** The key store of this system. If there is none, a string that says why. */
export function systemKeyStore(environment: Environment, platform: string = process.platform): KeyStore | string {
  const found = (name: string) => Bun.which(name, { PATH: environment.PATH ?? "" });
  if (platform === "darwin") {
    const program = found("security");
    return program === null ? "there is no 'security' in PATH" : keychain(program, environment);
  }
  if (platform !== "linux") return `Sluice knows none on ${platform}`;
  const program = found("secret-tool");
  if (program === null) return "there is no 'secret-tool' in PATH (Debian: libsecret-tools)";
  return hasBus(environment)
    ? secretService(program, environment)
    : "this session has no D-Bus, by which it is reached";
}

/**
 * Whether the session has a D-Bus. Without it, secret-tool would start a new bus, whose key store nobody could unlock.
 */
function hasBus({ DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR }: Environment): boolean {
  return Boolean(DBUS_SESSION_BUS_ADDRESS) || (XDG_RUNTIME_DIR ? existsSync(join(XDG_RUNTIME_DIR, "bus")) : false);
}

function secretService(program: string, environment: Environment): KeyStore {
  const attributes = (id: string) => ["service", "sluice", "sign-in", id];
  const run = (words: string[], input = "") => answered([program, ...words], input, environment);
  return {
    name: "the system's key store",
    async put(id, label, secret) {
      await succeeded(run(["store", `--label=${label}`, ...attributes(id)], secret));
    },
    async get(id) {
      const { code, out, err } = await run(["lookup", ...attributes(id)]);
      // If there is no such entry, secret-tool fails without an error message.
      if (code !== 0 && err === "") return null;
      return code === 0 ? out : failed(err);
    },
    async remove(id) {
      const { code, err } = await run(["clear", ...attributes(id)]);
      if (code !== 0 && err !== "") failed(err);
    },
  };
}

function keychain(program: string, environment: Environment): KeyStore {
  const entry = (id: string) => ["-s", "sluice", "-a", id];
  const run = (words: string[], input = "") => answered([program, ...words], input, environment);
  return {
    name: "the Keychain",
    async put(id, label, secret) {
      const words = ["add-generic-password", "-U", ...entry(id), "-l", label, "-w", secret];
      await succeeded(run(["-i"], `${words.map((word) => `"${word.replaceAll(/["\\]/g, "\\$&")}"`).join(" ")}\n`));
      // In interactive mode, `security` reports a failure only as text, not by its exit code, so the entry is read
      // back.
      if ((await this.get(id)) !== secret) throw new KeyStoreAway("it did not keep the secret");
    },
    async get(id) {
      const { code, out, err } = await run(["find-generic-password", ...entry(id), "-w"]);
      if (code === notFound) return null;
      return code === 0 ? out : failed(err);
    },
    async remove(id) {
      const { code, err } = await run(["delete-generic-password", ...entry(id)]);
      if (code !== 0 && code !== notFound) failed(err);
    },
  };
}

/** The exit code of `security` for `errSecItemNotFound`: there is no such entry. */
const notFound = 44;

interface ProgramOutcome {
  code: number;
  out: string;
  err: string;
}

async function answered(command: string[], input: string, environment: Environment): Promise<ProgramOutcome> {
  const child = Bun.spawn(command, { env: environment, stdin: new Blob([input]), stdout: "pipe", stderr: "pipe" });
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, call_ms);
  try {
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    if (isLate) throw new KeyStoreAway("it does not answer");
    return { code, out: out.trim(), err: oneLine(err.trim()) };
  } finally {
    clearTimeout(timer);
  }
}

async function succeeded(answer: Promise<ProgramOutcome>): Promise<void> {
  const { code, err } = await answer;
  if (code !== 0) failed(err);
}

function failed(err: string): never {
  throw new KeyStoreAway(err === "" ? "it refuses, and does not say why" : err);
}

/** The management interface of a node with a database of its own, and a command line that uses it over HTTP. */
import { afterAll, beforeAll } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { type OperatorPort, operatorPort } from "../../core/http/operator-port.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";
import { type Shell, shell } from "./shell.ts";

export interface ApplyNode extends AsyncDisposable {
  owned: Owned;
  port: OperatorPort;
  manage: Management;
  cli: Shell;
  /** Writes the text to the file, and applies the file. */
  apply(file: string, text: string, more: readonly string[]): ReturnType<Shell["typed"]>;
}

export const asTheFile = "Everything is as the file says.\n";

/**
 * Starts two nodes for the tests of a file, and creates the file to apply to them. The returned object is filled before
 * the first test.
 */
export function applyNodes() {
  const folder = mkdtempSync(join(tmpdir(), "sluice-apply-"));
  const file = join(folder, "organizations.yaml");
  let folders = 0;
  const freshFolder = () => mkdtempSync(join(folder, `secrets-${folders++}-`));
  const here = {} as ApplyNode;
  const there = {} as ApplyNode;
  beforeAll(async () => {
    const [one, other] = await Promise.all([applyNode(), applyNode()]);
    Object.assign(here, one);
    Object.assign(there, other);
  });
  afterAll(async () => {
    for (const one of [here, there]) await one[Symbol.asyncDispose]?.();
    rmSync(folder, { recursive: true, force: true });
  });
  const applyTo = (node: ApplyNode, text: string, ...more: string[]) => node.apply(file, text, more);
  const apply = (text: string, ...more: string[]) => applyTo(here, text, ...more);
  return { folder, file, freshFolder, here, there, applyTo, apply };
}

async function applyNode(): Promise<ApplyNode> {
  const owned = await openDatabase();
  const port = await operatorPort(owned);
  const environment = { SLUICE_SERVER: port.url, SLUICE_OPERATOR_TOKEN: port.tokens.admin };
  const cli = shell({ now_ms: Date.now, environment });
  return {
    owned,
    port,
    manage: port.manage,
    cli,
    apply(file, text, more) {
      writeFileSync(file, text);
      return cli.typed(["apply", "-f", file, ...more]);
    },
    async [Symbol.asyncDispose]() {
      await port.stop();
      await owned.drop();
    },
  };
}

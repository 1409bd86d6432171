/**
 * The management interface of a node with a database of its own, and a command line that uses it from another machine.
 */
import { writeFileSync } from "node:fs";
import type { Management } from "../../../src/admin/management/verbs.ts";
import { type OperatorPort, operatorPort } from "../../core/http/operator-port.ts";
import { type Owned, openDatabase } from "../../stores/postgres/databases.ts";
import { type Shell, shell } from "./shell.ts";

export interface ApplyNode extends AsyncDisposable {
  owned: Owned;
  port: OperatorPort;
  manage: Management;
  cli: Shell;
  /** Writes the text into the file, and applies it. */
  apply(file: string, text: string, more: readonly string[]): ReturnType<Shell["typed"]>;
}

export async function applyNode(): Promise<ApplyNode> {
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

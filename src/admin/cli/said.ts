/** Prints the output that a command describes as values (management/command.ts). */
import type { Facts, Piece, Said } from "../management/command.ts";
import { facts, table } from "./table.ts";
import { painted, type Terminal } from "./terminal.ts";

/**
 * Prints the output of a command. On a terminal, a watched answer replaces the previous output; elsewhere it is printed
 * after it.
 */
export function printSaid(terminal: Terminal, said: Said, now_ms: number, isWatched: boolean): void {
  const text = inWords(terminal, said, now_ms);
  if (!isWatched) terminal.out(text);
  else if (terminal.width === null) terminal.out(`${text}\n`);
  else terminal.out(`\u001b[H${text.replaceAll("\n", "\u001b[K\n")}\u001b[J`);
}

function inWords(terminal: Terminal, said: Said, now_ms: number): string {
  if (typeof said === "string") return said;
  if (!("pieces" in said)) return facts(terminal, said as Facts);
  return said.pieces
    .map((piece) => pieceInWords(terminal, piece, now_ms))
    .filter((text) => text !== "")
    .join("\n");
}

function pieceInWords(terminal: Terminal, piece: Piece, now_ms: number): string {
  if (typeof piece === "string") return piece;
  if ("facts" in piece) return facts(terminal, piece.facts);
  if ("secret" in piece) return `  ${painted(terminal, "bold", piece.secret)}\n`;
  if ("warnings" in piece) return piece.warnings.map((one) => `${painted(terminal, "yellow", one)}\n`).join("");
  return table(terminal, piece.columns, piece.rows as never[], now_ms) + (piece.after ?? "");
}

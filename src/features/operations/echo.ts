/**
 * Tells the echo of a prompt (`echo: true`) from the text behind it. Engines count the echo as input, so only the text
 * behind it is counted as output. Pure.
 */
import { type CompletionsRequest, promptOf } from "./completion-input.ts";

/** Returns the part of the next piece of an answer's text that was generated. */
export type Generated = (piece: string) => string;

export function generatedFor(wire: CompletionsRequest): Generated {
  if (!wire.echo) return (piece) => piece;
  const prompt = promptOf(wire);
  return typeof prompt === "string" ? behindText(prompt) : behindTokenIds(prompt.length);
}

/** A text that does not begin with the prompt was generated as a whole: the engine gave no echo. */
function behindText(prompt: string): Generated {
  let echo = prompt;
  let read = 0;
  return (piece) => {
    const end = Math.min(piece.length, echo.length - read);
    const isEcho = echo.startsWith(piece.slice(0, end), read);
    const generated = isEcho ? piece.slice(end) : echo.slice(0, read) + piece;
    read += end;
    // A prompt that is not needed any more is released from memory.
    if (!isEcho || read === echo.length) {
      echo = "";
      read = 0;
    }
    return generated;
  };
}

/** The most code units of a token on average, as for reports (core/usage/report.ts). */
const tokenUnits_max = 16;

/**
 * Handles a prompt of this many token ids, whose length as text is not known. Engines send the echo in the first piece,
 * of which nothing is counted that may be the echo.
 */
function behindTokenIds(count: number): Generated {
  let isBegun = false;
  return (piece) => {
    const generated = isBegun ? piece : piece.slice(count * tokenUnits_max);
    isBegun ||= piece !== "";
    return generated;
  };
}

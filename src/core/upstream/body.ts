import type { Reply } from "./http1/exchange.ts";

/** The text of an answer. Throws if it is larger than the limit. */
export async function readAtMost(reply: Pick<Reply, "read" | "drop">, bytes_max: number): Promise<string> {
  const decoder = new TextDecoder();
  const texts: string[] = [];
  let bytes = 0;
  for (;;) {
    const pieces = await reply.read();
    if (pieces === null) return texts.join("") + decoder.decode();
    for (const piece of pieces) {
      bytes += piece.byteLength;
      if (bytes > bytes_max) {
        reply.drop();
        throw new Error(`the upstream's answer is larger than ${bytes_max} bytes`);
      }
      texts.push(decoder.decode(piece, { stream: true }));
    }
  }
}

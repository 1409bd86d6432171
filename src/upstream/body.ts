/** The text of a response, up to a limit; more is an error, and is not read. */
export async function readAtMost(response: Response, bytes_max: number): Promise<string> {
  if (!response.body) return "";
  const decoder = new TextDecoder();
  const reader = response.body.getReader();
  const pieces: string[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return pieces.join("") + decoder.decode();
      bytes += value.byteLength;
      if (bytes > bytes_max) throw new Error(`the upstream's answer is larger than ${bytes_max} bytes`);
      pieces.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

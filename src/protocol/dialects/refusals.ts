/** The texts of refusals, as far as engines are known to use them: docs/engines.md, What engines say. */
import type { Refusals } from "../dialect.ts";

export const anyRefusals: Refusals = {
  tooLong: [
    /maximum context|context (length|window|size|limit)|max(imum)?_?model_?len|longer than the (model|maximum)/i,
    /exceeds? the (available )?context|prompt (is )?too long|too many (input )?tokens|maximum (prompt|input) length/i,
    /input tokens exceed|input token count|`inputs` tokens \+|\bn_ctx\b|context the overflows/i,
  ],
  inputTokens: [
    /(?<!at least )\b(\d+) (?:tokens )?(?:in (?:the messages|(?:your|the) prompt)|input tokens|tokens from the input|of text input|`inputs` tokens)/i,
    /(?:messages resulted in|input of about|request contains|prompt contains|keep the first) (\d+) tokens/i,
    /(?:prompt is too long:|context limit:) (\d+) (?:tokens >|\+ \d+ >)/i,
    /(?:request|input) \((\d+) tokens\)/i,
    /(?:total length|prompt \(length|token count \(|n_keep \()\s?(\d+)\)/i,
  ],
  full: [
    /\bqueued?\b|\bbusy and cannot accept\b|\btoken backlog limit\b|\bworkers are busy\b|\brequest limit reached\b/i,
    /\baborted by a higher priority\b/i,
  ],
  operators: [],
  unread: [
    { words: /^Failed to parse tools/, param: "tools" },
    {
      words:
        /^(Failed to parse (messages|tool call arguments)|Failed to (load|download) (image|audio|file)|(image|audio|video) input is not supported)/,
      param: "messages",
    },
  ],
  sentences: [],
};

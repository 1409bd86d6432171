// The request bodies of each protocol, and how a client counts the tokens that it receives.

export interface Spoken {
  path: string;
  /** Makes the body of a request. `cap`: the limit on the output, if there is one. */
  body(prompt: string, cap?: number): object;
  /**
   * Two patterns for frames of a stream: `token` matches a frame with one token, `end` one that says that the response
   * is complete.
   */
  token: RegExp;
  end: RegExp;
  /** The number of output tokens in the usage of an unstreamed response. */
  tokensOf(usage: Record<string, number>): number;
}

const says = (content: string) => ({ messages: [{ role: "user", content }] });

export const protocols: readonly Spoken[] = [
  {
    path: "/v1/chat/completions",
    body: (prompt, cap) => ({ ...says(prompt), ...(cap === undefined ? {} : { max_completion_tokens: cap }) }),
    token: /"delta":\{"content":"[^"]/,
    end: /"finish_reason":"/,
    tokensOf: (usage) => usage.completion_tokens!,
  },
  {
    path: "/v1/messages",
    body: (prompt, cap = 16_384) => ({ ...says(prompt), max_tokens: cap }),
    token: /"type":"text_delta","text":"[^"]/,
    end: /^event: message_stop$/m,
    tokensOf: (usage) => usage.output_tokens!,
  },
  {
    path: "/v1/responses",
    body: (input, cap) => ({ input, ...(cap === undefined ? {} : { max_output_tokens: cap }) }),
    token: /^event: response\.output_text\.delta$/m,
    end: /^event: response\.(completed|incomplete)$/m,
    tokensOf: (usage) => usage.output_tokens!,
  },
];

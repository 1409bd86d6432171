// Masks the parts in which equal responses of two nodes may differ: IDs, secrets, times and ports. Each ID is replaced
// by the number of its first appearance, so a wrong ID still shows as a difference. Messages are masked if their texts
// may differ.

const kinds: readonly [name: string, pattern: RegExp][] = [
  ["secret", /\b(?:sl[a-z]|whsec)_[A-Za-z0-9_-]{8,}/],
  ["masked secret", /\bsl[a-z]_[A-Za-z0-9]{4}…[A-Za-z0-9]{4}/],
  // Audit log entries about sealed (checked) records of the ledger are removed, and the numbers of all entries are
  // masked: the time at which a worker writes such an entry varies.
  ["seal", /\{[^{}]*"action":"usage\.seal"[^{}]*\{[^{}]*\{.*?\}\}[^{}]*\},?/],
  ["number", /"number":\d+/],
  ["length", /^[Cc]ontent-[Ll]ength: \d+/],
  ["id", /\b[a-z]{2,10}[-_][A-Za-z0-9]{20,}/],
  ["id", /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/],
  ["hash", /\b[0-9a-f]{32,64}\b/],
  ["letters of a secret", /"(?:prefix|suffix|key_suffix)":"[^"]*"/],
  ["sealed", /\bcompaction\.1:[A-Za-z0-9+/=_-]+/],
  ["signature", /"signature":"[^"]+"/],
  ["time", /\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/],
  ["date", /\b20\d\d-\d\d-\d\d\b/],
  ["date", /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} 20\d\d \d\d:\d\d:\d\d GMT/],
  ["seconds", /\b1[789]\d{8}(?:\.\d+)?\b/],
  ["duration", /\b(?:\d+h)?(?:\d+m)?\d+(?:\.\d+)?m?s\b/],
  ["milliseconds", /"[a-z0-9_]+_ms":\d+/],
  ["pace", /"[a-z_]+_per_second":[\d.]+/],
  ["fingerprint", /"configuration":"[0-9a-f]{16}"/],
  ["version", /\b\d+\.\d+\.\d+\+[0-9a-f]{12}\b/],
  ["port", /\b127\.0\.0\.1:\d+/],
  ["node", /"name":"[^":]+:\d{4,5}"/],
  ["cursor", /"(?:next_cursor|cursor)":"[^"]+"/],
];
const any = new RegExp(kinds.map(([, { source }]) => `(${source})`).join("|"), "gm");
/** The kinds whose values are replaced by numbers, so that different values stay distinct. */
const numbered = new Set(["id", "secret"]);

export class Masks {
  readonly #numbers = new Map<string, number>();

  constructor(private readonly hidesMessages: boolean) {}

  mask(text: string): string {
    const compared = this.hidesMessages ? text.replace(/"message":"(?:[^"\\]|\\.)*"/g, '"message":"…"') : text;
    return compared.replace(any, (found, ...groups: unknown[]) => {
      const [kind] = kinds[groups.findIndex((group) => group !== undefined)]!;
      return numbered.has(kind) ? `<${kind} ${this.#numberOf(found)}>` : `<${kind}>`;
    });
  }

  #numberOf(value: string): number {
    const number = this.#numbers.get(value) ?? this.#numbers.size + 1;
    this.#numbers.set(value, number);
    return number;
  }
}

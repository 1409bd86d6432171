/**
 * The texts of the simulator's answers, their tokens, and pseudo-random numbers with a seed from the conversation, so
 * that the same question gets the same answer.
 */

/** A source of numbers in [0, 1) that depend only on the source's seed. */
export type Random = () => number;

/** The generator Mulberry32: small, and good enough to choose words. */
export function random(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

export function hash(text: string, seed = 0): number {
  return Bun.hash.xxHash32(text, seed);
}

/**
 * Splits output into tokens: a run of up to six letters or digits, with the space before it, is one token, and so is
 * every other character. If only the first tokens are joined and split again, the result is the same tokens.
 */
export function tokens(text: string): string[] {
  return text.match(/ ?[\p{L}\p{M}\p{N}]{1,6}|[\s\S]/gu) ?? [];
}

/**
 * The number of tokens in an input, one for every four UTF-16 units. Only the length counts, so that long prompts are
 * cheap to count.
 */
export function inputTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/** The first characters of a text. A character is never split. */
export function shortened(text: string, characters_max: number): string {
  const head = [...text.slice(0, characters_max * 2)].slice(0, characters_max).join("");
  return head.length < text.length ? `${head}…` : head;
}

const prose = [
  " No model is behind these words: they are chosen by a hash of the conversation, and the same question gives the same answer.",
  " A sluice is a gate that lets a measured stream through, no more and no less than it was told to.",
  " The water rises behind the gate, the keeper reads the gauge, and the gate opens by a hand's breadth.",
  " In the polder they say: “wie het water deert, die het water keert” – whoever the water harms holds it back.",
  " Æther, naïve, façade, señor, Žižkov: letters with marks take two bytes each and must arrive whole.",
  " 水門 is the word for a sluice gate in Japanese, and шлюз in Russian, and سد is a dam.",
  " A canal boat 🚤 waits, the lock keeper 👩‍🔧 waves, and 🌊 follows 🌊.",
  " Every drop that passes is counted once, and every count is written down before the next drop falls.",
  " When the reader leaves, the stream ends at once, and what had passed until then is what there was.",
  " So this sentence goes on for a while, only to be one of the longer ones, with commas, and clauses, and little else.",
].map(tokens);

const thoughts = [
  "The simulator pretends to think here.",
  " First it reads the question once more.",
  " Then it weighs what could be said against what was asked.",
  " 考える means to think; it does no such thing.",
  " It settles on an answer that a hash has already chosen.",
].map(tokens);

/** `count` tokens of connected prose; without `exact`, whole sentences of about that many tokens. */
export function filler(count: number, exact: boolean, next: Random): string[] {
  return gathered(prose, count, exact, next);
}

/** Exactly `count` tokens of pretended reasoning. */
export function thinking(count: number, next: Random): string[] {
  const head = thoughts[0]!;
  const rest = gathered(thoughts.slice(1), count - head.length, true, next);
  return [...head.slice(0, count), ...rest];
}

function gathered(sentences: string[][], count: number, exact: boolean, next: Random): string[] {
  const pieces: string[] = [];
  while (pieces.length < count) {
    const sentence = sentences[Math.floor(next() * sentences.length)]!;
    for (const piece of sentence) pieces.push(piece);
  }
  if (exact && pieces.length > count) pieces.length = Math.max(0, count);
  return pieces;
}

/**
 * Clients that disconnect in mid-answer from an engine with a public vocabulary: their charges, compared with the
 * tokens that the engine produced.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import * as cl100k from "gpt-tokenizer/encoding/cl100k_base";
import * as o200k from "gpt-tokenizer/encoding/o200k_base";
import llama3 from "llama3-tokenizer-js";
import type { InferenceEvent, PartHead } from "../../../src/core/inference/event.ts";
import { noUsage } from "../../../src/core/inference/usage.ts";
import {
  type OutputCalibration,
  outputCalibration,
  type RouteCalibration,
} from "../../../src/core/usage/output-calibration.ts";
import { Tally } from "../../../src/core/usage/tally.ts";
import { type Chance, chanceOf } from "../../faults/chance.ts";

interface Vocabulary {
  encode(text: string): number[];
  decode(tokens: number[]): string;
}

/** A vocabulary with a cache, because the same texts and tokens come repeatedly here. */
function remembering({ encode, decode }: Vocabulary): Vocabulary {
  const tokensOf = new Map<string, number[]>();
  const textOf = new Map<string, string>();
  return {
    encode: (text) => tokensOf.getOrInsertComputed(text, encode),
    decode: (tokens) => textOf.getOrInsertComputed(tokens.join(" "), () => decode(tokens)),
  };
}

export const vocabularies: Record<string, Vocabulary> = {
  o200k: remembering(o200k),
  cl100k: remembering(cl100k),
  llama3: remembering({
    encode: (text) => llama3.encode(text, { bos: false, eos: false }),
    decode: (tokens) => llama3.decode(tokens),
  }),
};

const file = (name: string) => readFileSync(join(import.meta.dir, "../../..", name), "utf8");

/** Sentences for each kind of answer: prose, code and languages. */
export const kinds: Record<string, string[]> = {
  prose: file("docs/design/metering.md")
    .split(/(?<=\. )/)
    .filter((text) => /^[A-Z][^|`]*$/.test(text)),
  code: file("src/core/usage/attempts.ts").split(/(?<=\n {2}\}\n)/),
  German: [
    "Die Schleuse öffnet sich langsam, während das Wasser steigt und die Boote geduldig warten. ",
    "Niemand wusste genau, wie lange die Fahrt durch den alten Kanal an diesem Nachmittag dauern würde. ",
    "Am Ufer standen Kinder und winkten den Schiffern zu, die lachend ihre Mützen schwenkten. ",
    "Später setzte leichter Regen ein, und die Oberfläche zitterte unter tausend kleinen Kreisen. ",
  ],
  Russian: [
    "Шлюз открывается медленно, пока вода поднимается и лодки терпеливо ждут своей очереди. ",
    "Никто не знал точно, сколько времени займёт путь по старому каналу в тот тёплый вечер. ",
    "На берегу стояли дети и махали рукой капитанам, которые весело улыбались им в ответ. ",
    "Потом пошёл мелкий дождь, и поверхность воды задрожала от множества маленьких кругов. ",
  ],
  Chinese: [
    "闸门慢慢打开，水位不断上升，船只耐心地等待着。",
    "没有人知道那天下午穿过古老的运河需要多长时间。",
    "孩子们站在岸边，向船员们挥手，船员们笑着回应。",
    "后来下起了小雨，水面上泛起了无数小小的波纹。",
    "管理员记录每一滴水，因为账目必须准确无误。",
  ],
  Japanese: [
    "水門はゆっくりと開き、水位が上がる間、船は辛抱強く待っていた。",
    "その午後、古い運河を通り抜けるのにどれくらいかかるか、誰も知らなかった。",
    "岸辺には子どもたちが立ち、笑顔の船員たちに手を振っていた。",
    "やがて小雨が降り始め、水面には数えきれないほどの輪が広がった。",
  ],
  Korean: [
    "수문이 천천히 열리고 물이 차오르는 동안 배들은 끈기 있게 기다렸다. ",
    "그날 오후 오래된 운하를 지나는 데 얼마나 걸릴지 아무도 정확히 알지 못했다. ",
    "강가에는 아이들이 서서 웃고 있는 선원들에게 손을 흔들었다. ",
    "나중에 가랑비가 내리기 시작했고 수면에는 작은 물결이 번졌다. ",
  ],
  Arabic: [
    "يفتح السد ببطء بينما يرتفع الماء وتنتظر القوارب بصبر دورها في العبور. ",
    "لم يكن أحد يعرف بالضبط كم من الوقت ستستغرق الرحلة عبر القناة القديمة. ",
    "وقف الأطفال على الضفة ولوحوا للبحارة الذين ابتسموا لهم بفرح كبير. ",
  ],
};

/** An engine behind a route, with the route's calibration (what Sluice has learned from the engine's reports). */
export class Engine {
  readonly #vocabulary: Vocabulary;
  readonly #chance: Chance;
  readonly #learned: OutputCalibration = outputCalibration();
  readonly tokens_per_delta: number;

  constructor(vocabulary: Vocabulary, { tokens_per_delta = 1, seed = 1 } = {}) {
    this.#vocabulary = vocabulary;
    this.#chance = chanceOf(seed);
    this.tokens_per_delta = tokens_per_delta;
  }

  get route(): RouteCalibration {
    return this.#learned.of("main/m");
  }

  /** Lets the engine give whole answers of ordinary length, each with a usage report. */
  answers(sentences: readonly string[], count: number): void {
    for (let time = 0; time < count; time++) {
      const tokens = this.#text(sentences, 80 + this.#chance.below(400));
      this.#whole([{ head: { kind: "text" }, tokens }], tokens.length + 1, "stop");
    }
  }

  /**
   * Lets the engine give short answers: most of their tokens are thinking, calls, or markers that are not in the text.
   */
  oddAnswers(sentences: readonly string[], count: number): void {
    for (let time = 0; time < count; time++) {
      const some = this.#text(sentences, 3 + this.#chance.below(6));
      const marks = 10 + this.#chance.below(40);
      if (time % 3 === 0) this.#whole([{ head: { kind: "text" }, tokens: some }], some.length + marks, "stop");
      else if (time % 3 === 1) {
        const call = { kind: "tool-call", callId: "c", toolName: "look" } as const;
        this.#whole([{ head: call, tokens: this.#vocabulary.encode('{"x":1}') }], marks, "tool_calls");
      } else {
        const thought = { head: { kind: "reasoning" } as const, tokens: this.#text(sentences, 120) };
        this.#whole([thought, { head: { kind: "text" }, tokens: some }], 120 + some.length + marks, "stop");
      }
    }
  }

  /**
   * The charges of clients that disconnect at random places, divided by the tokens that the engine had produced for
   * them.
   */
  leavers(sentences: readonly string[], { count = 20, thinks = false } = {}): number {
    let [charged, made] = [0, 0];
    for (let time = 0; time < count; time++) {
      const tally = this.#tally();
      const thought = thinks ? this.#text(sentences, 150) : [];
      const said = this.#text(sentences, 60 + this.#chance.below(500));
      if (thinks) tally.add(this.#partOf(0, { head: { kind: "reasoning" }, tokens: thought }));
      tally.add(this.#partOf(1, { head: { kind: "text" }, tokens: said }).slice(0, -1));
      charged += tally.usage().outputTokens;
      // One marker token begins the thinking and another ends it.
      made += thought.length + said.length + (thinks ? 2 : 0);
    }
    return charged / made;
  }

  #text(sentences: readonly string[], tokens: number): number[] {
    const said: number[] = [];
    while (said.length < tokens) said.push(...this.#vocabulary.encode(this.#chance.pick(sentences)));
    return said.slice(0, tokens);
  }

  #tally(): Tally {
    return new Tally({
      contextTokens: 100_000,
      outputTokensCap: 100_000,
      inputTokensExpected: 5,
      calibration: () => this.route,
      tokenizing: null,
      keepsText: () => true,
    });
  }

  #whole(parts: { head: PartHead; tokens: number[] }[], reported: number, reason: "stop" | "tool_calls"): void {
    const tally = this.#tally();
    for (const [index, part] of parts.entries()) tally.add(this.#partOf(index, part));
    const usage = { ...noUsage, inputTokens: 5, outputTokens: reported, source: "reported" as const };
    tally.add([
      { type: "usage", usage },
      { type: "response-end", reason },
    ]);
    tally.calibrate();
  }

  /** Writes a character that is cut into several tokens with the last of these tokens, as engines do. */
  #partOf(index: number, { head, tokens }: { head: PartHead; tokens: number[] }): InferenceEvent[] {
    const events: InferenceEvent[] = [{ type: "part-start", index, part: head }];
    let pending: number[] = [];
    for (let from = 0; from < tokens.length; from += this.tokens_per_delta) {
      pending.push(...tokens.slice(from, from + this.tokens_per_delta));
      const delta = this.#vocabulary.decode(pending);
      if (delta.endsWith("\ufffd")) continue;
      if (delta !== "") events.push({ type: "part-delta", index, delta });
      pending = [];
    }
    return [...events, { type: "part-end", index }];
  }
}

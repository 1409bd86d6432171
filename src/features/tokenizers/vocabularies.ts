/**
 * Vocabularies: megabytes each, only for the worker, and loaded when they are first needed. The executable holds their
 * files unchanged: as bytecode they would be four times as large.
 */
import { GptEncoding } from "gpt-tokenizer/GptEncoding";
import o200kFile from "../../../node_modules/gpt-tokenizer/esm/bpeRanks/o200k_base.js" with { type: "file" };
import llama3File from "../../../node_modules/llama3-tokenizer-js/bundle/llama3-tokenizer-with-baked-data.js" with {
  type: "file",
};
import type { CountTokens, Vocabularies } from "./tokenizers.ts";

export function vocabularies(): Vocabularies {
  return { o200k_harmony: once(o200kHarmony), llama3: once(llama3) };
}

async function o200kHarmony(): Promise<CountTokens> {
  // TypeScript gives this import another type. Its value here is the path of the file.
  const path = o200kFile as unknown as string;
  const { default: ranks } = (await import(path)) as typeof import("gpt-tokenizer/bpeRanks/o200k_base");
  const encoding = GptEncoding.getEncodingApi("o200k_harmony", () => ranks);
  const settings = { disallowedSpecial: new Set<string>() };
  return (text) => encoding.countTokens(text, settings);
}

async function llama3(): Promise<CountTokens> {
  const { default: tokenizer } = (await import(llama3File)) as typeof import("llama3-tokenizer-js");
  const settings = { bos: false, eos: false };
  return (text) => tokenizer.encode(text, settings).length;
}

function once(load: () => Promise<CountTokens>): () => Promise<CountTokens> {
  let loaded: Promise<CountTokens> | undefined;
  return () => {
    loaded ??= load();
    return loaded;
  };
}

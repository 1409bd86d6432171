// Fuzzes the parsers of a request's target and of the key in its headers.

import fc from "fast-check";
import { credentialOf, isKey, keyPattern } from "../../src/core/auth/credential.ts";
import { Fault } from "../../src/core/inference/fault.ts";
import { targetOf } from "../../src/core/protocol/target.ts";
import { affordable } from "./cost.ts";
import { type Fuzzer, law } from "./fuzzer.ts";
import { linesOf, mutated } from "./mutation.ts";

const ms_per_kb = 2;
const keys = linesOf("keys");
const sound = keys.find(isKey)!;
const header = mutated(keys, [",", " ", "\t", "Bearer ", "bearer", "slk_", sound, "0", "é", '"', "Bearer Bearer "]);
const target = fc.oneof(
  mutated(linesOf("targets"), "/ ? # // .. %2e % \\ @ : http:// \0 é".split(" ")),
  fc.string({ unit: "binary" }),
);

export const keyFuzzer: Fuzzer = {
  name: "key",
  properties: {
    "any headers hold one key of right form, or it is a 401": law(header, header, (authorization, apiKey) => {
      const headers = { get: (name: string) => (name === "authorization" ? authorization : apiKey) };
      const found = affordable(authorization.length + apiKey.length, ms_per_kb, () =>
        outcome(() => credentialOf(headers)),
      );
      if (found instanceof Fault) {
        if (found.status !== 401) throw new Error(`a ${found.status}`);
        if (found.message.includes(sound)) throw new Error("the message repeats a key");
      } else if (!isKey(found) || !(authorization + apiKey).includes(found))
        throw new Error(`'${found}' is no key of these`);
    }),
    "what is a key is found by the pattern that is published": law(header, (text) => {
      if (isKey(text) && !new RegExp(`^${keyPattern}$`).test(text)) throw new Error("it is not found");
    }),
  },
};

export const targetFuzzer: Fuzzer = {
  name: "target",
  properties: {
    "any text is a path that begins with a slash, and a query": law(target, (text) => {
      const { path, query } = affordable(text.length, ms_per_kb, () => targetOf(text));
      if (!/^\/[^?#]*$/s.test(path) || query.includes("#")) throw new Error(`'${path}' and '${query}'`);
    }),
    "and what the URL's own parser finds, where it is a URL that this parser wrote": law(target, (text) => {
      const url = URL.parse(text);
      if (url?.protocol !== "http:") return;
      const found = targetOf(url.href);
      if (found.path !== url.pathname || found.query !== url.search.slice(1)) throw new Error(JSON.stringify(found));
    }),
    "read again, a path is itself": law(target, (text) => {
      const { path } = targetOf(text);
      if (targetOf(path).path !== path) throw new Error(`'${path}' became '${targetOf(path).path}'`);
    }),
  },
};

function outcome(work: () => string): string | Fault {
  try {
    return work();
  } catch (error) {
    if (error instanceof Fault) return error;
    throw error;
  }
}

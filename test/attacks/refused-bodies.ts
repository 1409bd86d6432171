// Attacks with bodies that the limits refuse. Each of them stalled a node that parsed it when it was measured.

import type { Attack } from "./attack.ts";
import { asking, body, filled, listed, mib, paths, saying, schema } from "./body.ts";

const { chat, messages, responses, count } = paths;
const brackets = () => filled("[", 33_000_000);
const bomb = { gzip: true, wanted: "400 invalid_json" };
const many = { wanted: "413" };

export const refusedBodies: readonly Attack[] = [
  ...Object.values(paths).map((path) =>
    body(`gzip of 33 million [, ${path}`, { ...bomb, path, isQuick: path === chat }, brackets),
  ),
  body("two counts of it at once", { ...bomb, path: count, parallel: 2 }, brackets),
  body("eight counts of it at once", { ...bomb, path: count, parallel: 8 }, brackets),
  body("gzip of 32 MiB of blanks", { ...many, gzip: true }, () => filled(" ", 32 * mib)),
  body("gzip of 31 MiB of text", { ...many, gzip: true }, (model) => saying(model, `"${filled("a", 31 * mib)}"`)),
  body("gzip of 11 million []", { gzip: true, ...many }, () => `[${listed(11_000_000, () => "[]")}]`),
  body("stop: 1.3 million []", { ...many, isQuick: true }, (model) =>
    asking(model, `"stop":[${listed(1_300_000, () => "[]")}]`),
  ),
  body("stop: 11 million []", many, (model) => asking(model, `"stop":[${listed(10_900_000, () => "[]")}]`)),
  body("logit_bias: 350,000 names", { ...many, isQuick: true }, (model) =>
    asking(model, `"logit_bias":{${listed(350_000, (at) => `"${at}":0`)}}`),
  ),
  body("logit_bias: 2.9 million names", many, (model) =>
    asking(model, `"logit_bias":{${listed(2_900_000, (at) => `"${at}":0`)}}`),
  ),
  body("a million names", many, (model) => asking(model, `"metadata":{${listed(1_000_000, (at) => `"k${at}":0`)}}`)),
  body("40,000 names in 1 MiB", many, (model) =>
    asking(model, `"metadata":{${listed(40_000, (at) => `"a name of its own ${at}":0`)}}`),
  ),
  body("a million times one name", many, (model) => asking(model, `"metadata":{${listed(1_000_000, () => '"k":0')}}`)),
  body("a million fields of the body", { ...many, path: responses }, (model) =>
    asking(
      model,
      listed(1_000_000, (at) => `"k${at}":0`),
    ),
  ),
  body("a schema of a million properties", many, (model) =>
    schema(model, `"properties":{${listed(1_000_000, (at) => `"p${at}":{}`)}}`),
  ),
  body("the same, as Messages", { ...many, path: messages }, (model) => {
    const properties = listed(1_000_000, (at) => `"p${at}":{}`);
    return asking(model, `"tools":[{"name":"f","input_schema":{"type":"object","properties":{${properties}}}}]`);
  }),
  body("objects 600,000 deep", { wanted: "400 invalid_json" }, () => {
    return `${filled('{"a":', 3_000_000)}0${filled("}", 600_000)}`;
  }),
  body("2 million small strings", many, (model) => asking(model, `"stop":[${listed(2_000_000, (at) => `"s${at}"`)}]`)),
];

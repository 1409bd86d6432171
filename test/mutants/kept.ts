import type { Mutant } from "./mutant.ts";

const repeats = "test/core/http/idempotency.test.ts";
const background = "test/core/http/background.test.ts";
const logs = "test/core/store/answer-log.test.ts";
const nanos = "test/core/http/kept-log.test.ts";
const edges = "test/core/http/kept-edges.test.ts";
const departed = "test/core/http/kept-departed.test.ts";
const rule = "docs/protocols.md, Repeating a request";

export const kept: Mutant[] = [
  {
    name: "a node that was frozen past its lease ends its log with a failure that was charged nothing",
    file: "src/features/responses/keeping.ts",
    find: "if (isFailure && this.#mayBeFree) this.#withheld = text;",
    replace: 'if (isFailure && text === "") this.#withheld = text;',
    caughtBy: ["test/core/http/kept-ends.test.ts"],
    rule: "docs/protocols.md, Repeating a request",
  },
  {
    name: "another body gets the answer of the key",
    file: "src/features/responses/keeping.ts",
    find: "if (earlier.body !== this.#kept.claim?.body) throw reused();",
    replace: "",
    caughtBy: [`${repeats} > another body`],
    rule,
  },
  {
    name: "a kept answer ends with its client",
    file: "src/core/operations/infer.ts",
    find: "if (!sink) call.watchClient();",
    replace: "call.watchClient();",
    caughtBy: [`${repeats} > whose client leaves`],
    rule,
  },
  {
    name: "a key is taken by a request that was refused",
    file: "src/features/responses/keeping.ts",
    find: "await answers.free(this.#name.requestId);",
    replace: "",
    caughtBy: [`${repeats} > fails before its answer`],
    rule,
  },
  {
    name: "a key is free before its settlement is confirmed",
    file: "src/features/responses/keeping.ts",
    find: "if (this.isRepeatable) await withinClaimTime(clock, this.#run?.confirmed() ?? Promise.resolve());",
    replace: "",
    caughtBy: [`${nanos} > once its settlement is confirmed`],
    rule,
  },
  {
    name: "the log of a background response that failed ends it as it had begun",
    file: "src/features/responses/keeping.ts",
    find: 'if (!this.#begun) await this.#ended("ended", writer.bytes);',
    replace: 'await this.#ended("ended", writer.bytes);',
    caughtBy: [`${background} > failed before its first part`],
    rule: "docs/protocols.md, Background responses",
  },
  {
    name: "a node keeps any number of answers at once",
    file: "src/features/responses/keeping.ts",
    find: "if (open.size >= settings().open_max) throw tooMany();",
    replace: "",
    caughtBy: [`${edges} > answers.open_max`],
    rule: "docs/configuration.md, answers",
  },
  {
    name: "a receipt says nothing of a client that had left where its key is free again",
    file: "src/features/responses/keeping.ts",
    find: "if (wentOn && !this.#begun) await",
    replace: "if (wentOn && !this.#begun && !this.#freesClaim) await",
    caughtBy: [`${departed} > its key is revoked`],
    rule,
  },
  {
    name: "a key is not the API key's own",
    file: "src/features/responses/key.ts",
    find: "person?.id ?? key.id, ",
    replace: "",
    caughtBy: [`${repeats} > a key is an organization's`],
    rule,
  },
  {
    name: "a log goes on after its end",
    file: "src/stores/redis/answer-log.ts",
    find: "if last and last[2][4] == '1' then return 'ended' end",
    replace: "",
    caughtBy: [`${logs} > on redis nothing comes after the end`],
    rule,
  },
  {
    name: "a cancelled response is stored as completed",
    file: "src/features/responses/keeping.ts",
    find: "if (!this.#isFinished) this.#call.cancel();",
    replace: "",
    caughtBy: [`${background} > it is cancelled`],
    rule: "docs/protocols.md, Background responses",
  },
  {
    name: "a follower gets events again that it has",
    file: "src/core/protocol/openai-responses/broken-stream.ts",
    find: "?? Infinity) > number)",
    replace: "?? Infinity) >= number)",
    caughtBy: [`${background} > without a gap`],
    rule: "docs/protocols.md, Background responses",
  },
  {
    name: "a background response begins whose claim was freed",
    file: "src/features/responses/keeping.ts",
    find: "if (!isOpen) throw claimGone();",
    replace: "",
    caughtBy: [`${nanos} > begins no background response`],
    rule,
  },
  {
    name: "a key waits for a clock that was set back",
    file: "src/features/responses/needs.ts",
    find: "Math.abs(age_ms) > kept.grant_ms()",
    replace: "age_ms > kept.grant_ms()",
    caughtBy: [`${nanos} > set back since`],
    rule,
  },
  {
    name: "a store that is away at the end of a log is a defect",
    file: "src/features/responses/follower.ts",
    find: "await available(this.#needs, this.#needs.kept.logs.read(this.#kept, this.#next));",
    replace: "await this.#needs.kept.logs.read(this.#kept, this.#next);",
    caughtBy: [`${nanos} > is put off`],
    rule,
  },
  {
    name: "a response is ended as gone whose node was only slow, and its key is charged twice",
    file: "src/features/responses/current-response.ts",
    find: "if (receipt !== null && receipt.endedAt === null) return null;",
    replace: "",
    caughtBy: [`${nanos} > was only slow`],
    rule,
  },
];

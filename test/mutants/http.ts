import type { Mutant } from "./mutant.ts";

const doors = "test/core/http/endpoints.test.ts";
const life = "test/core/http/life.test.ts";

export const http: Mutant[] = [
  {
    name: "large bodies take no turns",
    file: "src/core/http/shed.ts",
    find: "if (!isSmall && call.memory) call.takeTurns(bounds.turns.ofBody(call.memory.keyId));",
    replace: 'if (!isSmall && !call.memory) call.takeTurns(bounds.turns.ofBody(""));',
    caughtBy: ["test/core/body/turns.test.ts > whether it takes turns"],
    rule: "docs/design/service.md, Large bodies take turns",
  },
  {
    name: "a key with many large bodies has more turns",
    file: "src/core/body/turns.ts",
    find: "    this.#waiting.delete(keyId);\n    if (line.length > 0) this.#waiting.set(keyId, line);",
    replace: "    if (line.length === 0) this.#waiting.delete(keyId);",
    caughtBy: ["test/core/body/turns.test.ts > keys take turns"],
    rule: "docs/design/service.md, Large bodies take turns",
  },
  {
    name: "a 405 does not say which methods there are",
    file: "src/core/http/frame.ts",
    find: "    headers: { allow },\n",
    replace: "",
    caughtBy: [`${doors} > a known path with another method`],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a 405 does not say that HEAD is served",
    file: "src/node/app.ts",
    find: 'return method === "get" ? ["GET", "HEAD"] : [method.toUpperCase()];',
    replace: "return [method.toUpperCase()];",
    caughtBy: [`${doors} > a known path with another method`],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a refusal that is final does not say so",
    file: "src/core/http/frame.ts",
    find: "(details.retryAfterSeconds ?? 0) > 60;\n  return true;",
    replace: "(details.retryAfterSeconds ?? 0) > 60;\n  return false;",
    caughtBy: ["test/core/http/windows.test.ts > inference is 402 at once"],
    rule: "docs/design/errors-and-streams.md, Errors",
  },
  {
    name: "a 429 asks for a wait of days",
    file: "src/core/http/frame.ts",
    find: "(fault.status === 429 && isFinal(fault))",
    replace: "false",
    caughtBy: ["test/core/http/frame.test.ts > names the wait"],
    rule: "docs/design/errors-and-streams.md, Limits and their errors",
  },
  {
    name: "a path of another API is taken for a slip",
    file: "src/core/operations/unknown-path.ts",
    find: "if (unserved) throw notServed(path, unserved);",
    replace: "",
    caughtBy: ["test/core/http/unserved.test.ts > is refused with what the service lacks"],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a model may list fields by which clients decide how much is generated",
    file: "src/config/rules.ts",
    find: ": whyNotExtra(name);",
    replace: ": undefined;",
    caughtBy: ["test/config/file.test.ts"],
    rule: "docs/configuration.md, models",
  },
  {
    name: "a compressed body that hardly unpacks may be of any size",
    file: "src/core/body/decompress.ts",
    find: "if (bytes > body_bytes_max) throw tooLarge(body_bytes_max);",
    replace: "",
    caughtBy: ["test/core/http/body-shape.test.ts > hardly unpacks at all"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a compressed body may grow without a bound",
    file: "src/core/body/decompress.ts",
    find: "sent * body_ratio_max)",
    replace: "80 * sent * body_ratio_max)",
    caughtBy: ["test/core/http/body-shape.test.ts > unpacks to any ratio"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "requests of one poll are handled one by one",
    file: "src/core/operations/serve-operation.ts",
    find: "      await othersArrived();\n",
    replace: "",
    caughtBy: ["test/core/http/arrivals.test.ts"],
    rule: "docs/design/runtime.md, Bun as a server",
  },
  {
    name: "a body is read before the credential is looked at",
    file: "src/core/operations/serve-operation.ts",
    find: `    const principal = scope === null ? null : await authorize(dependencies, call, scope);
    if (principal) call.holds(dependencies.bounds.memory.reservation(principal.key.id));
    if (body && principal) {
      countArrival(dependencies, operation, principal);
      call.keepOpen();
      await othersArrived();
    }
    const parameters = guarded(call.request);
    const read = body && principal ? await body.read(dependencies, call, principal.organization) : null;`,
    replace: `    const read = body ? await body.read(dependencies, call, { id: "", keepsContent: false }) : null;
    const principal = scope === null ? null : await authorize(dependencies, call, scope);
    if (principal) call.holds(dependencies.bounds.memory.reservation(principal.key.id));
    if (body && principal) {
      countArrival(dependencies, operation, principal);
      call.keepOpen();
      await othersArrived();
    }
    const parameters = guarded(call.request);`,
    caughtBy: ["test/core/http/order-of-checks.test.ts"],
    rule: "docs/design/service.md, Order of checks",
  },
  {
    name: "what a request refers to is looked up before its model",
    file: "src/core/operations/prepare.ts",
    find: `  const model = allowedModel(catalog, body.value.model, principal.key.models, Date.now());
  const resolved = adapter.resolve && (await adapter.resolve(body.value, principal));`,
    replace: `  const resolved = adapter.resolve && (await adapter.resolve(body.value, principal));
  const model = allowedModel(catalog, body.value.model, principal.key.models, Date.now());`,
    caughtBy: ["test/core/http/responses-state.test.ts > a model that does not exist is refused first"],
    rule: "docs/design/service.md, Order of checks",
  },
  {
    name: "a key may do what its scopes do not say",
    file: "src/core/operations/authorize.ts",
    find: '  if (scope !== "any") requireScope(principal, scope);\n',
    replace: "",
    caughtBy: [`${doors} > a key without the scope is 403`],
    rule: "docs/design/keys.md, Scopes",
  },
  {
    name: "a node that drains says that it is ready",
    file: "src/core/http/lifecycle.ts",
    find: "      draining = true;\n",
    replace: "",
    caughtBy: [`${life} > lets a stream finish, says not ready`],
    rule: "docs/design/service.md, What scripts rely on",
  },
  {
    name: "a node that drains keeps connections that its end will cut",
    file: "src/core/http/frame.ts",
    find: "dependencies.lifecycle.draining || ",
    replace: "",
    caughtBy: [`${life} > lets a stream finish, says not ready`],
    rule: "docs/design/runtime.md, Bun as a server",
  },
  {
    name: "a database that is slow for two seconds takes all nodes out",
    file: "src/node/readiness-checks.ts",
    find: "whyNoAdmission(database, admission_ms)",
    replace: "whyNoAdmission(database, admission_ms / 2)",
    caughtBy: ["test/core/http/readiness.test.ts > passes if it answers"],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a process that stood still takes itself out",
    file: "src/core/operations/readiness.ts",
    find: ", clock);\n    countdown.set(check_ms);",
    replace: ", clock);\n    countdown.set(0);",
    caughtBy: ["test/core/http/readiness.test.ts > does not count the time"],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a probe hears what was known a second ago",
    file: "src/core/operations/readiness.ts",
    find: '    if ("read" in check) return check.read();\n',
    replace: "",
    caughtBy: ["test/core/http/readiness.test.ts > of a fact of this process"],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a schema that is not told is none",
    file: "src/node/readiness-checks.ts",
    find: "        // Another check decides whether it accepts admissions.\n",
    replace: '        last = "the database does not say which schema it has";\n',
    caughtBy: ["test/core/http/readiness.test.ts > of its schema keeps"],
    rule: "docs/design/service.md, Routes",
  },
  {
    name: "a stream that is open when the drain ends is cut",
    file: "src/core/http/lifecycle.ts",
    find: "      for (const call of open.members()) {",
    replace: "      for (const call of [] as Call[]) {",
    caughtBy: [`${life} > ends what is not done by the deadline`],
    rule: "docs/design/errors-and-streams.md, Failures in mid-stream",
  },
  {
    name: "the head of a large answer is written name by name",
    file: "src/core/http/json.ts",
    find: "if (text.length * 3 <= gathered_bytes_max) return text;",
    replace: "if (gathered_bytes_max > 0) return text;",
    caughtBy: ["test/core/http/json.test.ts > is whole and in few segments"],
    rule: "docs/design/runtime.md, Bun as a server",
  },
  {
    name: "an engine goes on for a client that left",
    file: "src/core/http/call.ts",
    find: "else signal.onabort = () => this.leave();",
    replace: "",
    caughtBy: ["test/core/http/departures.test.ts"],
    rule: "docs/design/usage.md, Settlement",
  },
  {
    name: "a client reads the last frame before its run has ended",
    file: "src/core/http/stream.ts",
    find: "this.#isBegun && value.some(isTerminal)",
    replace: "!this.#isBegun && value.some(isTerminal)",
    caughtBy: ["test/core/http/last-frames.test.ts > when the client reads the last frame"],
    rule: "docs/design/errors-and-streams.md, The end of a stream",
  },
  {
    name: "a failure before the first part is a 200",
    file: "src/core/http/stream.ts",
    find: 'if (decisive?.type === "response-failed") {',
    replace: "if (decisive === null) {",
    caughtBy: ["test/core/http/chat.test.ts > refused by the engine has its true status"],
    rule: "docs/design/errors-and-streams.md, Status before the first byte",
  },
  {
    name: "a body's members are not limited",
    file: "src/core/body/scan.ts",
    find: "if (shape.members > members_max)",
    replace: "if (shape.members > 2 * members_max)",
    caughtBy: ["test/core/http/body-shape.test.ts > and so many members"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a body's names are not limited",
    file: "src/core/body/scan.ts",
    find: "if (shape.names > names_max)",
    replace: "if (shape.names > 2 * names_max)",
    caughtBy: ["test/core/http/body-shape.test.ts > and so many different names"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a quote after two backslashes is taken for escaped",
    file: "src/core/body/json-bytes.ts",
    find: "return (to - at) % 2 === 1;",
    replace: "return to - at > 0;",
    caughtBy: ["test/fuzz/fuzz.test.ts"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a comma that is missing between two steps is not missed",
    file: "src/core/body/json-steps.ts",
    find: "      if (this.#bytes[from] !== comma) throw broken();\n      from += 1;",
    replace: "      if (this.#bytes[from] === comma) from += 1;",
    caughtBy: ["test/core/body/json-steps.test.ts"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a refused request costs its key nothing",
    file: "src/core/admission/arrivals.ts",
    find: "bucket.left -= 1;",
    replace: "",
    caughtBy: ["test/core/admission/arrivals.test.ts"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "counts of tokens use up the attempts of inference",
    file: "src/core/admission/arrivals.ts",
    find: "const name = `${purpose} ${keyId}`;",
    replace: "const name = keyId;",
    caughtBy: ["test/core/admission/arrivals.test.ts"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a plan of many requests has no more attempts than any other",
    file: "src/core/admission/arrivals.ts",
    find: "Math.max(least, timesThePlan * plan.requestsPerMinute)",
    replace: "least",
    caughtBy: ["test/core/admission/arrivals.test.ts"],
    rule: "docs/design/service.md, Cost before trust",
  },
  {
    name: "a connection whose answer is made idles for ever",
    file: "src/core/http/call.ts",
    find: "if (this.#isKeptOpen) this.connection.keepOpen(false);",
    replace: "",
    caughtBy: ["test/attacks/connections.test.ts > after a refusal, an answer or a stream"],
    rule: "docs/design/service.md, Connections",
  },
];

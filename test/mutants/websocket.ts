import type { Mutant } from "./mutant.ts";

const life = "test/core/http/websocket-life.test.ts";
const rule = "docs/design/service.md, WebSockets";

export const websocket: Mutant[] = [
  {
    name: "responses of one lane run side by side",
    file: "src/features/responses/websocket/create.ts",
    find: "    await this.#turn(call);\n",
    replace: "",
    caughtBy: [`${life} > run side by side`],
    rule,
  },
  {
    name: "a failed continuation leaves the conversation",
    file: "src/features/responses/websocket/create.ts",
    find: "if (!this.#isAnswered && this.#continued !== null)",
    replace: "if (this.#isAnswered && this.#continued !== null)",
    caughtBy: [`${life} > is forgotten when`],
    rule,
  },
  {
    name: "a key may have any number of sockets",
    file: "src/core/http/sockets.ts",
    find: " || ofKey >= key_max",
    replace: "",
    caughtBy: [`${life} > in another form`],
    rule,
  },
  {
    name: "messages without an answer are not counted",
    file: "src/features/responses/websocket/connection.ts",
    find: "this.#running.size >= this.#limits.unanswered_max",
    replace: "this.#running.size < 0",
    caughtBy: [`${life} > with 1008 when too many`],
    rule,
  },
  {
    name: "a revoked key keeps its socket",
    file: "src/features/responses/websocket/connection.ts",
    find: "      socket.end(closeReasons.refused, this.#refusal(fault)),",
    replace: "      void socket.send(this.#refusal(fault)),",
    caughtBy: [`${life} > with 401 and 1008`],
    rule,
  },
  {
    name: "a drain cuts a response off",
    file: "src/features/responses/websocket/connection.ts",
    find: "if (!this.#retirement || this.#running.size > 0) return;",
    replace: "if (!this.#retirement) return;",
    caughtBy: [`${life} > closes idle connections at once`],
    rule,
  },
  {
    name: "messages go to a client that reads nothing",
    file: "src/core/http/socket.ts",
    find: "    while (this.#room) await this.#room.promise;\n",
    replace: "",
    caughtBy: ["test/core/http/socket.test.ts > holds one message"],
    rule,
  },
  {
    name: "a response that is stored when its socket has closed keeps memory that nobody gives back",
    file: "src/features/responses/websocket/recent.ts",
    find: "if (this.#isDisposed) return;",
    replace: "",
    caughtBy: ["test/core/http/socket.test.ts > given back at the end"],
    rule,
  },
];

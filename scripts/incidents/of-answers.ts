import { redisSays } from "../../test/faults/stores.ts";
import { until } from "../../test/harness/until.ts";
import { has, type Incident, logs } from "./incident.ts";
import { asking, trickle } from "./load.ts";
import { type Node, sound } from "./site.ts";

const logsForgotten: Incident = {
  what: "Redis forgets the logs of answers while they are written",
  alerts: ["SluiceAnswersUnkept"],
  async begin(site) {
    const [first] = site.nodes;
    const load = trickle(first, { model: sound, directives: "tps=20 tokens=40", stream: true, isKept: true }, 5);
    const timer = setInterval(() => void redisSays(site.redis.port, "FLUSHALL").catch(() => {}), 700);
    return {
      signs: async () => ({
        SluiceAnswersUnkept: [
          "`answer_unkept` in the log, and *Answers not kept* has store",
          logs(first, "answer_unkept") && (await has(site, 'http_answers_unkept_total{why="store"} > 0')),
        ],
      }),
      async mend() {
        clearInterval(timer);
        await load.stop();
      },
    };
  },
};

const manyKept: Incident = {
  what: "ten clients leave long answers with idempotency keys at a node that may keep ten",
  alerts: ["SluiceKeptAnswersMany"],
  async begin(site) {
    const node = await site.another({ answers: "{ open_max: 10 }" });
    let isOver = false;
    // Each client sends its next request when the previous one has ended.
    const clients = Array.from({ length: 10 }, async () => {
      while (!isOver) await asking(node, { model: sound, directives: "tps=10 tokens=50", stream: true, isKept: true });
    });
    return {
      signs: async () => ({
        SluiceKeptAnswersMany: [
          "*Share of open kept answers and WebSockets* is above 80 %",
          await has(site, "http_kept_answers / (http_kept_answers_max > 0) > 0.8"),
        ],
      }),
      async mend() {
        isOver = true;
        await Promise.race([Promise.all(clients), Bun.sleep(10_000)]);
        await node.kill();
      },
    };
  },
};

const manySockets: Incident = {
  what: "clients open as many WebSockets as a node with little memory may have",
  alerts: ["SluiceWebSocketsMany"],
  async begin(site) {
    const node = await site.another({
      limits: "{ in_flight_bytes_max: 134217728, key_in_flight_bytes_max: 134217728 }",
    });
    const sockets = Array.from({ length: 16 }, () => open(node));
    await until(() => sockets.every(({ readyState }) => readyState === WebSocket.OPEN), 10_000, "the WebSockets");
    return {
      signs: async () => ({
        SluiceWebSocketsMany: ["a further one gets 426", (await upgrade(node)).status === 426],
      }),
      async mend() {
        for (const socket of sockets) socket.close();
        await node.kill();
      },
    };
  },
};

const open = ({ url, key }: Node) =>
  new WebSocket(`${url.replace("http", "ws")}/v1/responses`, { headers: { authorization: `Bearer ${key}` } });

const upgrade = ({ url, key }: Node) =>
  fetch(`${url}/v1/responses`, {
    headers: {
      authorization: `Bearer ${key}`,
      ...{ connection: "Upgrade", upgrade: "websocket", "sec-websocket-version": "13" },
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    },
  });

export const ofAnswers = { logsForgotten, manyKept, manySockets };

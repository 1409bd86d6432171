// Counts how often Node's http (with its connection pool, and with a new connection for each request) and its fetch
// read the refusal.

import { readFileSync } from "node:fs";
import { Agent, request } from "node:http";

const { cases, times } = JSON.parse(readFileSync(process.env.REFUSALS, "utf8"));

const clients = {
  "node http": byHttp(new Agent({ keepAlive: true })),
  "node http, a connection each": byHttp(false),
  "node fetch": async ({ url, method, headers }, body) => {
    const response = await fetch(url, { method, headers, body });
    return { status: response.status, text: await response.text() };
  },
};

function byHttp(agent) {
  return ({ url, method, headers }, body) =>
    new Promise((resolve, reject) => {
      const sending = request(url, { method, agent, headers: { ...headers, "content-length": body.length } });
      sending.on("error", reject);
      sending.on("response", (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece) => {
          text += piece;
        });
        response.on("end", () => resolve({ status: response.statusCode, text }));
        response.on("error", reject);
      });
      sending.end(body);
    });
}

for (const [client, ask] of Object.entries(clients)) {
  for (const one of cases) {
    const body = readFileSync(one.body);
    let read = 0;
    let failure = null;
    for (let i = 0; i < times; i++) {
      try {
        const { status, text } = await ask(one, body);
        if (status === one.status && text.includes(`"${one.code}"`)) read++;
        else failure = `${status} ${text.slice(0, 200)}`;
      } catch (error) {
        failure = error.cause?.code ?? error.code ?? String(error);
      }
    }
    console.log(JSON.stringify({ client, reason: one.reason, size_mib: one.size_mib, read, failure }));
  }
}

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { workersOf } from "../../test/features/workers/node.ts";
import { until } from "../../test/harness/until.ts";
import { has, type Incident, inHand, logs } from "./incident.ts";
import { asking, trickle } from "./load.ts";
import { sound } from "./site.ts";

const killed: Incident = {
  what: "a node is killed with requests in hand",
  alerts: ["SluiceDown", "SluiceNodesDie"],
  async begin(site) {
    const [first, second] = site.nodes;
    for (let begun = 0; begun < 5; begun++)
      void asking(second, { model: sound, directives: "tps=2 tokens=200", stream: true });
    await inHand(site, second, 5);
    await second.kill();
    return {
      // The killed node's row in the database stays for five minutes, and only then the notice is sent that its problem
      // is over.
      notices: { begun: [`The node ${second.name} has a problem`], over: [] },
      async signs() {
        const answers = await fetch(`${second.url}/livez`).then(
          () => true,
          () => false,
        );
        return {
          SluiceDown: ["/livez does not answer", !answers],
          SluiceNodesDie: ["`recovered` in another node's log", logs(first, "recovered")],
        };
      },
      mend: second.start,
    };
  },
};

const connectionsLeftOpen: Incident = {
  what: "clients leave connections open at a node that may have 256 descriptors",
  alerts: ["SluiceDescriptorsFew", "SluiceShedding"],
  async begin(site) {
    const node = await site.another({ descriptors: 256 });
    const sockets = Array.from({ length: 230 }, () => {
      const socket = connect(Number(new URL(node.url).port), "127.0.0.1");
      socket.on("error", () => {}).resume();
      socket.write("GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n");
      return socket;
    });
    const load = trickle(node, { model: sound, directives: "tokens=2" }, 2);
    return {
      signs: async () => ({
        SluiceDescriptorsFew: ["*Descriptors*", await has(site, "process_open_fds / (process_max_fds > 0) > 0.8")],
        SluiceShedding: [
          "*Refused for room* has descriptors",
          await has(site, 'http_shed_total{full="descriptors"} > 0'),
        ],
      }),
      async mend() {
        for (const socket of sockets) socket.destroy();
        await load.stop();
        await node.kill();
      },
    };
  },
};

const workerUnstarted: Incident = {
  what: "a worker dies when the file with an engine's key is gone",
  alerts: ["SluiceWorkersMissing"],
  async begin(site) {
    const folder = mkdtempSync(join(tmpdir(), "sluice-key-"));
    const engineKeyFile = join(folder, "engine-key");
    const put = () => writeFileSync(engineKeyFile, "of-an-engine");
    put();
    const node = await site.another({ workers: 2, engineKeyFile });
    rmSync(engineKeyFile);
    process.kill(workersOf(node.pid()).get(2)!, "SIGKILL");
    return {
      signs: async () => ({
        SluiceWorkersMissing: [
          "the log has the file, and behind it `worker_lost`; the node serves",
          /engine-key.*"event":"worker_lost"/s.test(node.log()) && (await fetch(`${node.url}/readyz`)).ok,
        ],
      }),
      async mend() {
        put();
        await until(() => /"event":"worker_serving"/.test(lastOf(node.log())), 60_000, "the worker to serve");
        rmSync(folder, { recursive: true });
      },
    };
  },
};

/** The log lines after the last line about a lost worker. */
const lastOf = (log: string) => log.slice(log.lastIndexOf('"event":"worker_lost"'));

const keysTried: Incident = {
  what: "somebody tries keys",
  alerts: ["SluiceKeysTried"],
  async begin({ nodes: [first] }) {
    const load = trickle({ url: first.url, key: "slk_no_such_key" }, { model: sound, directives: "" }, 20);
    return {
      signs: async () => ({
        SluiceKeysTried: ["401 by `client` in the log", /"status":401,"client":"127/.test(first.log())],
      }),
      mend: load.stop,
    };
  },
};

const halted: Incident = {
  what: "a node gets the CPU half of the time",
  alerts: ["SluiceEventLoopBlocked"],
  async begin(site) {
    const [first] = site.nodes;
    let isOver = false;
    const halting = (async () => {
      while (!isOver) {
        first.signal("SIGSTOP");
        await Bun.sleep(400);
        first.signal("SIGCONT");
        await Bun.sleep(400);
      }
    })();
    return {
      signs: async () => ({
        SluiceEventLoopBlocked: ["*CPU* is low", await has(site, "rate(process_cpu_seconds_total[20s]) < 0.5")],
      }),
      async mend() {
        isOver = true;
        await halting;
      },
    };
  },
};

const otherConfiguration: Incident = {
  what: "one node is reloaded with another file",
  alerts: ["SluiceConfigurationsDiffer"],
  async begin(site) {
    const [, second] = site.nodes;
    const text = readFileSync(second.configuration, "utf8");
    const reload = (configuration: string) => {
      writeFileSync(second.configuration, configuration);
      second.signal("SIGHUP");
    };
    reload(`${text}metrics: { organizations_max: 3 }\n`);
    return {
      notices: {
        begun: [`The node ${second.name} has a problem`],
        over: [`The node ${second.name} has no problem any more, or is gone`],
      },
      signs: async () => ({
        SluiceConfigurationsDiffer: [
          "*Configurations* has two",
          (await site.prometheus.query("count by (hash) (configuration_info)")).length === 2,
        ],
      }),
      mend: async () => reload(text),
    };
  },
};

export const ofNodes = { killed, workerUnstarted, connectionsLeftOpen, keysTried, halted, otherConfiguration };

/**
 * Sends streamed chat requests with a key to the core alone, on the embedded database, and measures the last ones.
 * `files` prints the files of `src` of which a function ran before the client got its first byte. `awaits` prints the
 * number of awaits that were pending at the engine's first byte, minus those of an idle node. The counters are
 * installed before the modules of `src` are loaded.
 */
import { Session } from "node:inspector";
import { resolve } from "node:path";

const warm_requests = 50;
const measured_requests = 5;
const root = resolve(import.meta.dir, "../..");

interface Measure<Result> {
  /** Called before each measured request. */
  begin(): Promise<void>;
  /** Called once for each request, at the time that `moment` names. */
  end(): Promise<Result>;
  moment: "engineFirst" | "clientFirst";
}

/** Measures the files of `src` of which a function ran between `begin` and `end`. */
async function coverage(): Promise<Measure<string[]>> {
  const session = new Session();
  session.connect();
  const post = (method: string, params: object = {}) =>
    new Promise<never>((done, failed) => {
      session.post(method, params as never, (error: Error | null, result: unknown) =>
        error ? failed(error) : done(result as never),
      );
    });
  await post("Profiler.enable");
  await post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  const taken = () => post("Profiler.takePreciseCoverage") as Promise<{ result: Script[] }>;
  return {
    begin: async () => void (await taken()),
    moment: "clientFirst",
    async end() {
      const { result } = await taken();
      const ran = result.filter(({ url, functions }) => url.includes(`${root}/src/`) && functions.some(hasRun));
      return ran.map(({ url }) => url.slice(url.indexOf(`${root}/`) + root.length + 1));
    },
  };
}

interface Script {
  url: string;
  functions: { functionName: string; ranges: { count: number; startOffset: number }[] }[];
}

/**
 * Whether the function ran. The first function of a script is the module itself, which ran when the script was loaded,
 * and is ignored.
 */
const hasRun = ({ ranges }: Script["functions"][number], at: number) => at > 0 && ranges[0]!.count > 0;

async function awaits(): Promise<Measure<number>> {
  const { pendingAwaits } = await import("./awaits.ts");
  let idle = 0;
  return {
    moment: "engineFirst",
    async begin() {
      idle = pendingAwaits();
    },
    end: async () => pendingAwaits() - idle,
  };
}

async function main(): Promise<void> {
  const what = process.argv[2];
  if (what === "files") {
    // A file counts only if it ran in every measured request. Otherwise the node's timers would add files.
    const [first, ...others] = await measured(await coverage());
    const always = first!.filter((file) => others.every((files) => files.includes(file)));
    console.log(JSON.stringify(always.sort()));
  } else console.log(JSON.stringify(Math.max(...(await measured(await awaits())))));
  process.exit(0);
}

async function measured<Result>({ begin, end, moment }: Measure<Result>): Promise<Result[]> {
  const { serveCore } = await import("./served.ts");
  const results: Result[] = [];
  let isMeasured = false;
  const nothing = async () => {};
  const ended = async () => {
    if (isMeasured) results.push(await end());
    isMeasured = false;
  };
  const core = await serveCore({ engineFirst: nothing, clientFirst: nothing, [moment]: ended });
  for (let at = 0; at < warm_requests + measured_requests; at += 1) {
    if (at >= warm_requests) {
      await core.idle();
      await begin();
      isMeasured = true;
    }
    await core.ask();
  }
  await core.stop();
  return results;
}

await main();

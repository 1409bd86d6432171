// Continuous streams and requests until the load is stopped, with a tally of their outcomes.

export interface Load {
  url: string;
  key: string;
  streams: number;
  requests_per_second: number;
  /** The duration of one stream. */
  stream_s: number;
}

export interface Tally {
  streams: number;
  /** The number of streams that began, and then did not end correctly. */
  cut: number;
  requests: number;
  failed: number;
  /** The longest pause within a stream. */
  silence_ms_max: number;
  /** The first problems of the run, each with its time. */
  problems: string[];
}

export interface Running {
  tally: Tally;
  /** Starts no more streams and requests, and waits for the running ones. */
  stop(): Promise<void>;
}

const tokens_per_second = 10;
const problems_max = 20;

export function startLoad(load: Load): Running {
  const tally: Tally = { streams: 0, cut: 0, requests: 0, failed: 0, silence_ms_max: 0, problems: [] };
  const began = performance.now();
  let ends = false;
  const tell = (what: string) => {
    if (tally.problems.length < problems_max)
      tally.problems.push(`${((performance.now() - began) / 1000).toFixed(1)} s: ${what}`);
  };
  const oneStream = async () => {
    // The starts are spread over the duration of a stream, so that streams begin at all times.
    await Bun.sleep(Math.random() * load.stream_s * 1000);
    while (!ends) {
      const problem = await stream(load, tally).catch((cause) => ({ cut: false, what: String(cause) }));
      tally.streams += 1;
      if (problem === null) continue;
      if (problem.cut) tally.cut += 1;
      else tally.failed += 1;
      tell(`stream: ${problem.what}`);
    }
  };
  const pending = new Set<Promise<void>>();
  const steady = async () => {
    for (let count = 0; !ends; count++) {
      const wait = began + (1000 * count) / load.requests_per_second - performance.now();
      if (wait > 0) await Bun.sleep(wait);
      const one = request(load)
        .catch((cause) => String(cause))
        .then((problem) => {
          tally.requests += 1;
          pending.delete(one);
          if (problem === null) return;
          tally.failed += 1;
          tell(`request: ${problem}`);
        });
      pending.add(one);
    }
    await Promise.all(pending);
  };
  const all = [steady(), ...Array.from({ length: load.streams }, oneStream)];
  return {
    tally,
    async stop() {
      ends = true;
      await Promise.all(all);
    },
  };
}

function post({ url, key }: Load, directives: string, stream: boolean): Promise<Response> {
  return fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "openai/gpt-oss-120b",
      stream,
      messages: [{ role: "user", content: `Go on. [simulator: ${directives}]` }],
    }),
  });
}

async function request(load: Load): Promise<string | null> {
  const response = await post(load, "tokens=8", false);
  const text = await response.text();
  return response.status === 200 && text.includes('"finish_reason"')
    ? null
    : `${response.status} ${text.slice(0, 200)}`;
}

async function stream(load: Load, tally: Tally): Promise<{ cut: boolean; what: string } | null> {
  const directives = `tokens=${load.stream_s * tokens_per_second} tps=${tokens_per_second}`;
  const response = await post(load, directives, true);
  if (response.status !== 200)
    return { cut: false, what: `${response.status} ${(await response.text()).slice(0, 200)}` };
  let text = "";
  let last = performance.now();
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body!) {
      const now = performance.now();
      tally.silence_ms_max = Math.max(tally.silence_ms_max, now - last);
      last = now;
      text = (text + decoder.decode(chunk, { stream: true })).slice(-2000);
    }
  } catch (cause) {
    return { cut: true, what: String(cause) };
  }
  const isWhole = text.trimEnd().endsWith("data: [DONE]") && text.includes('"finish_reason":"stop"');
  return isWhole ? null : { cut: true, what: `ended with ${text.slice(-200)}` };
}

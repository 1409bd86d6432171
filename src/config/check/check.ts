/** Asks an engine everything on which an upstream's rows in sluice.yaml depend: docs/engines.md, Checking an engine. */
import type { Dialect } from "../../core/protocol/dialect.ts";
import { Cancellation } from "../../core/time/cancellation.ts";
import { type Client, client as newClient } from "../../core/upstream/http1/client.ts";
import type { Upstream } from "../../core/upstream/target.ts";
import { silence } from "../engine.ts";
import { asking } from "./asking.ts";
import { engineQuestions } from "./engine-questions.ts";
import { type CheckQuestion, hello, type Judged, type Verdict } from "./question.ts";
import { textQuestions } from "./text-questions.ts";
import { toolQuestions } from "./tool-questions.ts";

export const questions: readonly CheckQuestion[] = [...textQuestions, ...toolQuestions, ...engineQuestions];

export interface Finding extends Judged {
  question: string;
  does: string;
  /** The verdict (`yes`, `no` or `unknown`) that fits the engine's dialect; null if every verdict fits. */
  expected: Verdict | null;
}

export interface CheckSettings {
  upstream: Upstream;
  dialect: Dialect;
  /** The engine's own name of the model. */
  model: string;
  contextTokens: number | null;
  /**
   * How many questions (probe requests) are asked. `short`: only those that `sluice init` asks. `long`: also the one
   * with a prompt beyond the context.
   */
  extent: "short" | "usual" | "long";
  /** Called before each question. */
  asks?(does: string): void;
}

/** Checks an engine, and returns the findings. Throws an Error if the engine takes no request at all. */
export async function checkEngine(settings: CheckSettings): Promise<Finding[]> {
  const { upstream, extent, asks } = settings;
  const client = newClient();
  const engine = asking({ ...settings, client });
  const due = questions.filter(
    ({ protocols, isShort, isLong }) =>
      (protocols?.includes(upstream.protocol) ?? true) && (extent === "short" ? isShort : !isLong || extent === "long"),
  );
  try {
    await assertAnswers(settings, engine, client);
    const findings: Finding[] = [];
    for (const { name, does, expects, ask } of due) {
      asks?.(does);
      const expected = expects?.(settings.dialect) ?? null;
      findings.push({ question: name, does, expected, ...(await ask(engine)) });
    }
    return findings;
  } finally {
    client.close();
  }
}

async function assertAnswers(
  { upstream, model }: CheckSettings,
  engine: ReturnType<typeof asking>,
  client: Client,
): Promise<void> {
  const { end } = await hello(engine);
  const { url, protocol } = upstream;
  if (end.kind === "unreachable")
    throw new Error(silence(url, await failureOf(client, upstream), "set tls.ca_file of its upstream to its file"));
  if (end.status === 401 || end.status === 403)
    throw new Error(`The engine at ${url} refuses the key (${end.status}). Correct its api_key in sluice.yaml.`);
  if (end.kind !== "refused") return;
  const said = end.said ? `: ${end.said.slice(0, 200)}` : "";
  throw new Error(
    `The engine at ${url} does not serve '${model}' in ${protocol} (${end.status}${said}). Choose --model.`,
  );
}

/** The error of another try to connect; null if the engine answers now. */
async function failureOf(client: Client, { url, address, tls, timeouts }: Upstream): Promise<unknown> {
  const { connect_ms } = timeouts;
  const asked = { url: `${url}/models`, address, headers: {}, tls: tls ?? null, connect_ms };
  return client.get({ ...asked, signal: Cancellation.timeout(connect_ms) }).then(
    (reply) => void reply.drop(),
    (error: unknown) => error,
  );
}

export function verdictsOf(findings: readonly Finding[]): ReadonlyMap<string, Verdict> {
  return new Map(findings.map(({ question, verdict }) => [question, verdict]));
}

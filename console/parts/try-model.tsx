/**
 * Sends a message to a model, as the reader's own key or as a key that they may administer, and shows the answer and
 * its receipt.
 */
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { announce } from "../core/announce.ts";
import { callingKeys } from "../core/calling-keys.ts";
import { commandLine } from "../core/command-line.ts";
import { eventsIn } from "../core/events.ts";
import { send } from "../core/http.ts";
import { Refusal } from "../core/request.ts";
import { may, session } from "../core/session.ts";
import { useAnswer } from "../core/use-answer.ts";
import { CommandLine } from "./command-line.tsx";
import type { Model } from "./model-table.tsx";
import { Section } from "./section.tsx";
import { Labelled, Select } from "./select.tsx";

const option = (flag: string) => ({ flag, none: null, words: {} });
/** The entry of the command `sluice try`, which belongs to no verb. */
const tryCommand = {
  words: "try",
  flags: { model: option("[model]"), message: option("--message <text>"), key: option("--key <id>") },
  limits: null,
  isConfirmed: false,
};

interface Said {
  text: string;
  request: string | null;
  failure: string | null;
  isRunning: boolean;
}

type Kind = Model["kind"];

const nothing: Said = { text: "", request: null, failure: null, isRunning: false };

/** The request to a model of each kind. */
const asks: Record<Kind, { path: string; label: string; body(text: string, documents: string[]): object }> = {
  chat: {
    path: "/v1/chat/completions",
    label: "Message",
    body: (content) => ({ stream: true, messages: [{ role: "user", content }] }),
  },
  completion: {
    path: "/v1/completions",
    label: "Prompt",
    body: (prompt) => ({ stream: true, prompt, max_tokens: 256 }),
  },
  embedding: { path: "/v1/embeddings", label: "Text", body: (input) => ({ input }) },
  rerank: { path: "/v1/rerank", label: "Query", body: (query, documents) => ({ query, documents }) },
};

/**
 * The kind of a model. A model that is not listed is taken for a chat model. If it is of another kind, the server's
 * refusal says what it is for.
 */
function useKind(model: string): Kind {
  const { answer } = useAnswer("listModels", may("listModels") ? {} : null);
  return answer?.data.find(({ id, aliases }) => id === model || aliases.includes(model))?.kind ?? "chat";
}

export function TryModel({ model }: { model: string }) {
  const kind = useKind(model);
  const [documents, setDocuments] = useState("Hello, and welcome.\nThe tide is out at noon.");
  const [message, setMessage] = useState("Say hello in one sentence.");
  const [key, setKey] = useState<string | null>(null);
  const [said, setSaid] = useState(nothing);
  const abort = useRef<AbortController | null>(null);
  const [id, documentsId] = [useId(), useId()];
  // Stops the answer when the page is left: nobody would read the rest, and it would be charged.
  useEffect(() => () => abort.current?.abort(), []);
  if (!may("tryModel")) return null;
  const needsKey = session.value?.kind === "operator";
  const ask = async (event: Event) => {
    event.preventDefault();
    abort.current = new AbortController();
    setSaid({ ...nothing, isRunning: true });
    const add = (more: Partial<Said>) => setSaid((before) => ({ ...before, ...more }));
    const heard = (text: string) => setSaid((before) => ({ ...before, text: before.text + text }));
    const failure = await answered(
      { model, kind, message, documents: lines(documents), key, signal: abort.current.signal },
      add,
      heard,
    );
    add({ failure, isRunning: false });
    announce(failure ?? "The answer is complete.");
  };
  return (
    <Section title="Try it" aside="answered here, and charged like any request">
      <form class="try" onSubmit={ask}>
        {needsKey && <KeyChoice value={key} change={setKey} />}
        <div class="field">
          <label for={id}>{asks[kind].label}</label>
          <textarea id={id} rows={3} value={message} onInput={(event) => setMessage(event.currentTarget.value)} />
        </div>
        {kind === "rerank" && (
          <div class="field">
            <label for={documentsId}>Documents, one in each line</label>
            <textarea
              id={documentsId}
              rows={3}
              value={documents}
              onInput={(event) => setDocuments(event.currentTarget.value)}
            />
          </div>
        )}
        <p>
          <button
            type="submit"
            class="primary"
            disabled={said.isRunning || message === "" || (needsKey && key === null)}
          >
            Ask {model}
          </button>{" "}
          {said.isRunning && (
            <button type="button" onClick={() => abort.current?.abort()}>
              Stop
            </button>
          )}
        </p>
        <CommandLine text={commandLine(tryCommand, { model, message, key })} />
      </form>
      {said.text !== "" && <p class="said">{said.text}</p>}
      {said.failure !== null && (
        <p class="failed" role="alert">
          {said.failure}
        </p>
      )}
      {said.request !== null && !said.isRunning && (
        <p class="fine">
          <a href={`/requests/${said.request}`}>Its receipt</a>
        </p>
      )}
    </Section>
  );
}

/** A choice of the key to try with: only active keys with the right to inference. */
function KeyChoice({ value, change }: { value: string | null; change: (key: string | null) => void }) {
  const organizations = useAnswer("pageOrganizations", {});
  const [chosen, setChosen] = useState<string | null>(null);
  const organization = chosen ?? organizations.answer?.data[0]?.slug ?? null;
  const keys = useAnswer("pageKeys", organization === null ? null : { organization, state: "active" });
  const usable = callingKeys(keys.answer?.data ?? [], organization);
  if (value === null && usable[0]) change(usable[0].id);
  return (
    <div class="filters">
      <Labelled label="Organization">
        {(id) => (
          <Select
            id={id}
            value={organization ?? ""}
            options={organizations.answer?.data.map(({ slug }) => slug) ?? []}
            change={(slug) => {
              setChosen(slug);
              change(null);
            }}
          />
        )}
      </Labelled>
      <Labelled label="As key">
        {(id) => (
          <Select
            id={id}
            aria-busy={keys.isLoading}
            value={value ?? ""}
            options={usable.map((key) => [key.id, key.name])}
            change={change}
          />
        )}
      </Labelled>
      {keys.answer && !keys.isLoading && usable.length === 0 && (
        <p class="fine">This organization has no key that may call.</p>
      )}
    </div>
  );
}

const lines = (text: string) => text.split("\n").filter((line) => line.trim() !== "");

interface Asked {
  model: string;
  kind: Kind;
  message: string;
  documents: string[];
  key: string | null;
  signal: AbortSignal;
}

/** Sends the request; returns why it failed, or null if the answer was complete. */
async function answered(
  { model, kind, message, documents, key, signal }: Asked,
  add: (more: Partial<Said>) => void,
  heard: (text: string) => void,
): Promise<string | null> {
  try {
    const body = { model, ...asks[kind].body(message, documents) };
    const query = new URLSearchParams({ ...(key !== null && { key }), path: asks[kind].path });
    const response = await send({ method: "post", path: `/management/v1/try?${query}`, body, signal });
    add({ request: response.headers.get("x-service-request-id") });
    if (kind === "embedding" || kind === "rerank") {
      heard(wholeText(await response.json(), documents));
      return null;
    }
    for await (const { data } of eventsIn(response.body!)) {
      if (data === "[DONE]") return null;
      const event = JSON.parse(data);
      if (event.error) return event.error.message;
      heard(event.choices?.[0]?.delta?.content ?? event.choices?.[0]?.text ?? "");
    }
    return "The answer broke off.";
  } catch (failure) {
    if (signal.aborted) return "You stopped it. What came until then is charged.";
    if (failure instanceof Refusal) add({ request: failure.requestId });
    return failure instanceof Error ? failure.message : String(failure);
  }
}

const numbers_shown = 8;

/** The text for an answer of numbers: an embedding or a ranking. */
function wholeText(
  { data, results = [] }: { data?: { embedding: number[] }[]; results?: { index: number; relevance_score: number }[] },
  documents: readonly string[],
): string {
  const vector = data?.[0]?.embedding;
  if (!vector) return results.map(({ index, relevance_score }) => `${relevance_score}  ${documents[index]}`).join("\n");
  return `${vector.length} numbers: ${vector.slice(0, numbers_shown).join(", ")}${vector.length > numbers_shown ? ", …" : ""}`;
}

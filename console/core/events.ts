import { refusalFrom } from "./request.ts";

export interface StreamEvent {
  /** The name of the event; absent: it has none. */
  event?: string;
  data: string;
}

/** Reads an event stream from the body of a response: EventSource cannot send the secret of the session. */
export async function* eventsIn(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<StreamEvent> {
  let rest = "";
  let data: string[] = [];
  let event: { event?: string } = {};
  for await (const text of textIn(body)) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines.map((one) => one.replace(/\r$/, ""))) {
      if (line.startsWith("event:")) event = { event: line.slice(6).trim() };
      if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
      if (line !== "") continue;
      if (data.length > 0) yield { ...event, data: data.join("\n") };
      data = [];
      event = {};
    }
  }
}

/** The answers in the event stream of a live verb. Throws Refusal when the server ends it with the event `error`. */
export async function* answersIn(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<unknown> {
  for await (const { event, data } of eventsIn(body)) {
    const answer = JSON.parse(data);
    if (event === "error") throw refusalFrom(answer.error, 0);
    yield answer;
  }
}

async function* textIn(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) yield part.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

// Randomly drawn mutants that change no visible behaviour, or none that is promised, each with the reason. They are not
// drawn again. `npm run mutants -- --drawn` prints the entries whose mutant no longer exists.

export const equivalents: Readonly<Record<string, string>> = {
  "db/migrations/0001_baseline/responses.sql, kept_response_keep: boundary shifted 2":
    "At that very size the turn of the loop finds nothing to delete, and ends.",
  "src/core/admission/queue.ts, commandQueue.remove: nothing returned 1":
    "Only a deadline takes a command out, and settlements have none.",
  "src/core/auth/remembered.ts, lastUsed.add: operand dropped 2":
    "Which of several addresses of one key within seconds is noted is not promised.",
  "src/core/http/bounds.ts, clientAddresses: constant off by one 2": "No proxy is configured by what is no address.",
  "src/features/identity/issuer-clients.ts, boundedFetch: fallback dropped 1":
    "A response takes undefined for no body, as it does null.",
  "src/admin/management/plans.ts, limitKeys: text emptied 1": "The name that comes along is the plan's own.",
  "src/stores/memory/rates.ts, memoryRates.close: returned early 1": "Its memory goes with the node.",
  "src/stores/memory/rates.ts, prune: boundary shifted 3": "The same entries are dropped at other moments.",
  "src/stores/memory/rates.ts, prune: sum turned 4": "The same entries are dropped at other moments.",
  "src/stores/memory/rates.ts, retry_ms: empty returned 8":
    "Once all entries have ended there is room: a request that needs more than its limit was refused before.",
  "src/stores/redis/rates-script.ts, looked_at_max: constant off by one 1": "How far a refusal looks is not promised.",
  "src/features/probing/names.ts, names.prepare.asking: nothing returned 1":
    "`Promise.all` takes null for a promise that is kept.",
  "src/features/sharing/sharing.ts, short_ms: constant off by one 1":
    "A millisecond more of a wait that is not promised.",
  "src/features/simulator/answer.ts, efforts: constant off by one 4":
    "How much a simulated model thinks is not promised.",
  "src/features/simulator/clock.ts, Clock.#arm.timer: boundary shifted 1":
    "At that very instant it rings a moment later.",
  "src/features/telemetry/process.ts, watchProcess: constant off by one 1":
    "What is said of a limit that the system does not tell is not promised.",
  "src/features/telemetry/spans.ts, Spans.#addCallerIds: statements swapped 1":
    "Neither looks at what the other changes.",
  "src/features/telemetry/metrics.ts, prometheusMetrics.routes: statements swapped 1":
    "Each is a reading of its own; the order of metrics is that of the table.",
  "src/features/telemetry/process.ts, watchProcess.seconds: boundary shifted 1": "Nothing in seconds is nothing.",
  "src/core/time/cancellation.ts, Countdown.#look: statement dropped 2":
    "To call off a timer that has run does nothing.",
  "src/core/time/cancellation.ts, Countdown: constant off by one 2": "It is set before it is read.",
  "src/features/tokenizers/count.ts, pieces: constant off by one 4": "The slice from 0 is the whole text.",
  "src/features/tokenizers/examine.ts, noMedia: constant off by one 1":
    "Only for the media of a request is anybody asked.",
  "src/features/tokenizers/harmony-types.ts, typeOf: boundary shifted 1":
    "How deep a schema is followed is not promised.",
  "src/features/tokenizers/worker.ts, large_bytes: sum turned 1": "When garbage is collected is not promised.",
  "src/core/upstream/ask.ts, ask: statements swapped 5": "Neither hears of the other.",
  "src/core/upstream/http1/head.ts, trimmed: boundary shifted 2": "A colon stands before the value, and is not blank.",
  "src/core/usage/answer-text.ts, Part.add: condition negated 1": "The same text is joined at other moments.",
  "src/core/usage/attempts.ts, Attempts.#slotFor: constant off by one 1":
    "A pause is longer than a millisecond, or there is none.",
  "src/core/usage/forwarded.ts, Forwarded.add: constant off by one 1": "It is only asked whether there are any.",
  "src/features/upkeep/receipt-watch.ts, receiptWatch.rounds: constant off by one 1":
    "The first round begins a millisecond later.",
  "src/features/workers/lines.ts, wholeLines.flush: boundary shifted 1": "To write nothing changes nothing.",
};

/** One server-sent event. `event` is absent in protocols that do not name their events. */
export interface SseMessage {
  event?: string;
  data: string;
  /** The data has no line break, so it need not be looked through: it may be long, and in pieces. */
  isOneLine?: true;
}

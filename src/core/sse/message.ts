/** One server-sent event. `event` is absent in protocols that do not name their events. */
export interface SseMessage {
  event?: string;
  data: string;
  /** Set if the data has no line break, so that it need not be searched for one: it may be long. */
  isOneLine?: true;
}

/** One server-sent event. `event` is absent in protocols that do not name their events. */
export interface SseMessage {
  event?: string;
  data: string;
}

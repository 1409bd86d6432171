/**
 * The `encrypted_content` of a compaction, which clients keep and send back unread. It is not secret: a fixed prefix
 * (`mark`), followed by the model's summary of the client's own conversation.
 */
const mark = "compaction.1:";

export function sealCompaction(summary: string): string {
  return mark + summary;
}

/** The summary in a compaction item. The contract refuses items of other services (contract.ts, CompactionItem). */
export function unsealCompaction(sealed: string): string {
  return sealed.slice(mark.length);
}

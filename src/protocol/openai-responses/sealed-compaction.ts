/**
 * `encrypted_content` of a compaction: what clients keep of a conversation and send back unread. It hides nothing: it is
 * the model's summary of the client's own conversation, behind a mark.
 */
const mark = "compaction.1:";

export function sealCompaction(summary: string): string {
  return mark + summary;
}

/** The summary in a compaction item of ours; the contract refuses every other (contract.ts, CompactionItem). */
export function unsealCompaction(sealed: string): string {
  return sealed.slice(mark.length);
}

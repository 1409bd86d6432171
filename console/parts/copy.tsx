/** A text to copy, with its button. */
import { useState } from "preact/hooks";
import { announce } from "../core/announce.ts";

const shown_ms = 1500;

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, setSaid] = useState<string | null>(null);
  const copy = async () => {
    const words = (await isCopied(text)) ? "Copied" : "Not copied";
    setSaid(words);
    announce(`${words}.`);
    setTimeout(() => setSaid(null), shown_ms);
  };
  return (
    <button type="button" class="quiet small" onClick={copy}>
      {said ?? label}
    </button>
  );
}

/**
 * Copies a text, and says whether that worked. Browsers offer the clipboard only to pages that came over TLS or from
 * this machine, and may refuse even that.
 */
async function isCopied(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const before = document.activeElement as HTMLElement | null;
    const area = document.createElement("textarea");
    area.value = text;
    // Nothing outside of an open dialog can be selected.
    (document.querySelector("dialog[open]") ?? document.body).append(area);
    area.select();
    const isDone = document.execCommand("copy");
    area.remove();
    before?.focus();
    return isDone;
  }
}

/** A block of text to copy, such as a command or a setting, with its button. */
export function Block({ text, label }: { text: string; label: string }) {
  return (
    <div class="block">
      <section aria-label={label}>
        <pre>{text}</pre>
      </section>
      <Copy text={text} />
    </div>
  );
}

/**
 * Chromium on a system with the language C says "en-US@posix", which is no language tag: whatever formats a number by it
 * throws, at its import. Import this before anything that does.
 */
if (!isTag(navigator.language)) Object.defineProperty(navigator, "language", { value: "en", configurable: true });

function isTag(language: string): boolean {
  try {
    return Intl.getCanonicalLocales(language).length === 1;
  } catch {
    return false;
  }
}

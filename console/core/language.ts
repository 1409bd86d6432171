/**
 * Chromium on a system with the language C reports "en-US@posix", which is no language tag: code that formats a number
 * by it throws at its import. Import this before any such code.
 */
if (!isTag(navigator.language)) Object.defineProperty(navigator, "language", { value: "en", configurable: true });

function isTag(language: string): boolean {
  try {
    return Intl.getCanonicalLocales(language).length === 1;
  } catch {
    return false;
  }
}

/**
 * Chromium on a system with the locale C reports the language "en-US@posix", which is not a valid language tag: a
 * module that creates a number format for that language throws on import. Import this module before any such module.
 */
if (!isTag(navigator.language)) Object.defineProperty(navigator, "language", { value: "en", configurable: true });

function isTag(language: string): boolean {
  try {
    return Intl.getCanonicalLocales(language).length === 1;
  } catch {
    return false;
  }
}

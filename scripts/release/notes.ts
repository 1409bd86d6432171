/**
 * The section about a version in a changelog in the format of Keep a Changelog. Throws if the section is missing or
 * empty.
 */
export function notesOf(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.startsWith(`[${version}]`));
  const notes = section?.slice(section.indexOf("\n") + 1).trim() ?? "";
  if (notes === "") throw new Error(`CHANGELOG.md says nothing of ${version}.`);
  return notes;
}

/** The anchor of a heading, as code hosts generate it. The site uses the same anchors, so that a link works on both. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/** The search that VitePress opens calls itself a button, with fields and links in it. It is a dialog. */
export function nameSearchDialog(): void {
  new MutationObserver(() => {
    const dialog = document.querySelector(".VPLocalSearchBox[role=button]");
    if (dialog === null) return;
    for (const name of ["aria-expanded", "aria-haspopup", "aria-owns", "aria-labelledby"]) dialog.removeAttribute(name);
    dialog.setAttribute("role", "dialog");
    dialog.setAttribute("aria-modal", "true");
    dialog.setAttribute("aria-label", "Search");
  }).observe(document.body, { childList: true, subtree: true });
}

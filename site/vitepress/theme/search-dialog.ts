/**
 * The search of VitePress calls itself a button, and its results options of a list box, though they are links. Here it is a
 * dialog with a list of links, as a screen reader needs it.
 */
export function nameSearchDialog(): void {
  new MutationObserver(() => {
    const dialog = document.querySelector(".VPLocalSearchBox");
    if (dialog !== null) rename(dialog);
  }).observe(document.body, {
    childList: true,
    subtree: true,
    attributeFilter: ["aria-label", "aria-selected", "role"],
  });
}

function rename(dialog: Element): void {
  if (dialog.getAttribute("role") === "button") {
    for (const name of ["aria-expanded", "aria-haspopup", "aria-owns", "aria-labelledby"]) dialog.removeAttribute(name);
    dialog.setAttribute("role", "dialog");
    dialog.setAttribute("aria-modal", "true");
    dialog.setAttribute("aria-label", "Search");
  }
  for (const list of dialog.querySelectorAll("[role=listbox]")) list.setAttribute("role", "list");
  for (const item of dialog.querySelectorAll("[role=option]")) item.setAttribute("role", "listitem");
  for (const item of dialog.querySelectorAll("[aria-selected]")) item.removeAttribute("aria-selected");
  for (const link of dialog.querySelectorAll("a[aria-label]")) link.removeAttribute("aria-label");
  for (const key of dialog.querySelectorAll("kbd[aria-label]:not([role])")) key.setAttribute("role", "img");
}

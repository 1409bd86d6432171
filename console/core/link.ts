type Place = Pick<URL, "pathname" | "search" | "hash">;

/** Whether a link leads to a place on the page itself, such as "Skip to the page": the browser then moves the focus. */
export function staysOn(link: Place, here: Place): boolean {
  return link.hash !== "" && link.pathname === here.pathname && link.search === here.search;
}

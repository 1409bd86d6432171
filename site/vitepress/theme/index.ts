// The fonts are those of the reader's system: the site loads none.
import DefaultTheme from "vitepress/theme-without-fonts";
import { h, onMounted } from "vue";
import { nameSearchDialog } from "./search-dialog.ts";
import "./style.css";

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { "not-found": notFound }),
  setup: () => onMounted(nameSearchDialog),
};

function notFound() {
  return h("main", { class: "not-found" }, [
    h("h1", "There is no such page"),
    h("p", [h("a", { href: "/" }, "Go to the first page"), ", or search for it."]),
  ]);
}

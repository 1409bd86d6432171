/** The theme, light or dark: that of the system, until the reader chooses one. */
import { computed, effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const stored = "sluice-theme";
const themes: readonly Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(themes.find((one) => one === localStorage.getItem(stored)) ?? "system");

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length]!;
  if (theme.value === "system") localStorage.removeItem(stored);
  else localStorage.setItem(stored, theme.value);
}

const system = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(system.matches);
system.addEventListener("change", () => {
  isSystemDark.value = system.matches;
});

/** The theme that the pages have now: that of the system, unless the reader chose one. */
const currentTheme = computed<"light" | "dark">(() => {
  if (theme.value !== "system") return theme.value;
  return isSystemDark.value ? "dark" : "light";
});

effect(() => document.documentElement.setAttribute("data-theme", currentTheme.value));

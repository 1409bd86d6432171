/** Light or dark: as the system says, until the reader chooses. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const stored = "sluice-theme";
const themes: readonly Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(themes.find((one) => one === localStorage.getItem(stored)) ?? "system");

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length]!;
  if (theme.value === "system") localStorage.removeItem(stored);
  else localStorage.setItem(stored, theme.value);
}

effect(() => {
  if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
  else document.documentElement.setAttribute("data-theme", theme.value);
});

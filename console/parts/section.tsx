/** The parts of a page. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isNarrow } from "../core/narrow.ts";

interface Titled {
  title: string;
  /** The instant or time span that the section is about, or its buttons. */
  aside?: ComponentChildren;
  children: ComponentChildren;
}

interface PageTitled extends Titled {
  /** The page that this one is a part of. */
  up?: { href: string; name: string } | null | undefined;
}

export function Page({ title, up, aside, children }: PageTitled) {
  useEffect(() => {
    document.title = `${title} – Sluice`;
  }, [title]);
  return (
    <>
      <header class="page-head">
        {up && (
          <a class="up" href={up.href}>
            {up.name}
          </a>
        )}
        <h1>{title}</h1>
        {aside && <div class="aside">{aside}</div>}
      </header>
      {children}
    </>
  );
}

export function Section({ title, aside, children }: Titled) {
  return (
    <section class="section">
      <header class="section-head">
        <h2>{title}</h2>
        {aside && <div class="aside">{aside}</div>}
      </header>
      {children}
    </section>
  );
}

/** A part that is folded on a narrow screen until somebody opens it. Until then, it loads nothing. */
export function Folding({ label, children }: { label: string; children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  if (!isNarrow()) return <>{children}</>;
  return (
    <details class="section" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{label}</summary>
      {isOpen && children}
    </details>
  );
}

/** A box for a section with nothing to show, which says what to do next. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** A fact for each line; facts without a value are left out. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return <span class={`badge ${tone}`}>{children}</span>;
}

export type Tone = "calm" | "good" | "warn" | "bad";

/** A state, in a colour if it is good or may need attention, otherwise in grey. */
export function State({ of, words }: { of: string; words?: string }) {
  const tone = tones[of] ?? "calm";
  return <Badge tone={tone}>{words ?? of.replaceAll("_", " ")}</Badge>;
}

const tones: Record<string, Tone> = {
  ready: "good",
  active: "good",
  running: "good",
  closed: "calm",
  failed: "bad",
  refused: "warn",
  suspended: "bad",
  silent: "bad",
  not_ready: "bad",
  open: "bad",
  "half-open": "warn",
  draining: "warn",
  drained: "warn",
  expired: "warn",
};

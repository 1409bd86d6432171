/** A dialog over the page. The browser keeps the focus in it, and returns the focus at its end. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface Props {
  title: string;
  close: () => void;
  /** Whether the dialog cannot be closed now. */
  isHeld?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, close, isHeld = false, children }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  // A layout effect is cleaned up while the dialog is still in the document. For a removed dialog, the browser would
  // not return the focus.
  useLayoutEffect(() => {
    const dialog = element.current!;
    dialog.showModal();
    return () => dialog.close();
  }, []);
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => isHeld && event.preventDefault()}
      // On a second Escape, a browser closes the dialog although `onCancel` prevented it, so it is opened again.
      onClose={() => (isHeld ? element.current?.showModal() : close())}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" disabled={isHeld} onClick={close}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

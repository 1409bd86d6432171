/** A field with suggestions below it: arrows choose, Enter takes, Escape closes. */
import type { Ref } from "preact";
import { useId, useState } from "preact/hooks";

export interface Option {
  key: string;
  name: string;
  /** The text that distinguishes options with the same name. */
  more: string;
}

interface Props<Of extends Option> {
  /** The label of the field, if no other element is its label. */
  label?: string;
  id?: string;
  placeholder?: string | undefined;
  text: string;
  setText: (text: string) => void;
  options: readonly Of[];
  /** The text to show if there are no suggestions; null: they are still loading, or nothing was searched for. */
  none: string | null;
  choose: (one: Of) => void;
  /** Called on Enter if no suggestion is chosen. */
  submit?: () => void;
  onLeave?: () => void;
  input?: Ref<HTMLInputElement>;
}

const keyCodeOfInputMethod = 229;

export function Combobox<Of extends Option>(props: Props<Of>) {
  const { label, placeholder, text, setText, options, none, choose, submit, onLeave, input } = props;
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const own = useId();
  const list = `${own}-list`;
  const isShown = isOpen && (options.length > 0 || none !== null);
  const current = Math.min(at, options.length - 1);
  const taken = (one: Of) => {
    setOpen(false);
    choose(one);
  };
  const pressed = (event: KeyboardEvent) => {
    // While an input method composes a word, keys belong to it: Enter confirms the word and chooses no suggestion. In
    // Safari the composition ends before that Enter, so only the key code tells it apart.
    if (event.isComposing || event.keyCode === keyCodeOfInputMethod) return;
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1 };
    const step = steps[event.key];
    if (step !== undefined && options.length > 0) {
      event.preventDefault();
      setOpen(true);
      setAt((current + (isOpen ? step : 0) + options.length) % options.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (isShown && options[current]) taken(options[current]);
      else submit?.();
    } else if (event.key === "Escape") {
      if (isShown) setOpen(false);
      else (event.currentTarget as HTMLInputElement).blur();
    }
  };
  return (
    <div class="combobox">
      <input
        ref={input ?? null}
        id={props.id ?? own}
        type="text"
        role="combobox"
        aria-label={label}
        aria-autocomplete="list"
        aria-expanded={isShown}
        aria-controls={list}
        aria-activedescendant={isShown && options.length > 0 ? `${list}-${current}` : undefined}
        placeholder={placeholder}
        value={text}
        spellcheck={false}
        autoComplete="off"
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
          setOpen(true);
        }}
        onKeyDown={pressed}
        onBlur={() => {
          setOpen(false);
          onLeave?.();
        }}
      />
      <div id={list} role="listbox" aria-label={`${label ?? "Suggestions"}: found`} class="found" hidden={!isShown}>
        {options.map((one, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field handles the keys.
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus.
          <div
            key={one.key}
            id={`${list}-${place}`}
            role="option"
            aria-selected={place === current}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => taken(one)}
          >
            <span class="found-name">{one.name}</span> <span class="fine">{one.more}</span>
          </div>
        ))}
      </div>
      {isShown && options.length === 0 && (
        <p class="found" role="status">
          {none}
        </p>
      )}
    </div>
  );
}

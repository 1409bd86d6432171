/** One field of a form. */
import { useId } from "preact/hooks";
import { type Field, patterns } from "../core/form.ts";
import { type Choice, Select } from "./select.tsx";

const dayInput = { type: "date" } as const;
const textInput = { type: "text" } as const;
/**
 * The attributes of each kind of input, besides its pattern (core/form.ts). The browser shows `title` if the text does
 * not match.
 */
const inputs = {
  number: { inputMode: "numeric", title: "A whole number, or nothing." },
  signed: { title: "A whole number." },
  amount: { title: "An amount such as 50 or 0.25, none, or nothing." },
  count: { title: "A whole number, none, or nothing." },
  money: { inputMode: "decimal", title: "An amount such as 50 or 0.25, or nothing." },
} as const;

function inputOf({ kind, none = "no limit" }: Field) {
  if (kind === "day") return dayInput;
  const pattern = patterns[kind];
  if (pattern === undefined || !(kind in inputs)) return textInput;
  const hasPlaceholder = kind === "number" || kind === "money";
  return {
    type: "text",
    pattern,
    ...inputs[kind as keyof typeof inputs],
    ...(hasPlaceholder && { placeholder: none }),
  } as const;
}

interface Props {
  of: Field;
  value: string | boolean;
  change: (value: string | boolean) => void;
}

export function FieldOf({ of: field, value, change }: Props) {
  const id = useId();
  const { label, kind } = field;
  const hint = [kind === "day" && "When this day begins, UTC", field.hint].filter(Boolean).join(". ");
  const described = hint === "" ? undefined : `${id}-hint`;
  const note = described && (
    <p class="fine" id={described}>
      {hint}
    </p>
  );
  if (kind === "flag") {
    return (
      <div class="field flag">
        <input
          id={id}
          type="checkbox"
          checked={value === true}
          aria-describedby={described}
          onChange={(event) => change(event.currentTarget.checked)}
        />
        <label for={id}>{label}</label>
        {note}
      </div>
    );
  }
  return (
    <div class="field">
      <label for={id} class={field.isRequired ? "required" : undefined}>
        {label}
      </label>
      {kind === "choice" ? (
        <Select
          id={id}
          required={field.isRequired === true}
          value={String(value)}
          aria-describedby={described}
          options={offeredBy(field)}
          change={change}
        />
      ) : (
        <input
          id={id}
          {...inputOf(field)}
          required={field.isRequired === true}
          value={String(value)}
          aria-describedby={described}
          autoComplete="off"
          spellcheck={false}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
      {note}
    </div>
  );
}

/** The choices of a field that is one of some values, with one for nothing if the field may be left empty. */
function offeredBy({ choices = [], isRequired }: Field): readonly Choice[] {
  const hasEmpty = choices.some((one) => (typeof one === "string" ? one : one[0]) === "");
  return hasEmpty || isRequired ? choices : [["", "–"], ...choices];
}

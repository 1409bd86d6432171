/** One field of a form. */
import { useId } from "preact/hooks";
import type { Field } from "../core/form.ts";

const dayInput = { type: "date" } as const;
const textInput = { type: "text" } as const;
const numberInput = {
  type: "text",
  inputMode: "numeric",
  pattern: "[0-9][0-9 ,_]*",
  title: "A whole number, or nothing.",
} as const;
const amountInput = {
  type: "text",
  pattern: "[0-9.]+ ?[A-Za-z]*|none",
  title: "An amount, none, or nothing.",
} as const;
const countInput = { type: "text", pattern: "[0-9]+|none", title: "A whole number, none, or nothing." } as const;
const moneyInput = {
  type: "text",
  inputMode: "decimal",
  pattern: "[0-9]+([.][0-9]{1,9})?",
  title: "An amount such as 50 or 0.25, or nothing.",
} as const;
const signedInput = { type: "text", pattern: "[-−]?[0-9][0-9 ,_]*", title: "A whole number." } as const;

function inputOf({ kind, none = "no limit" }: Field) {
  if (kind === "day") return dayInput;
  if (kind === "number") return { ...numberInput, placeholder: none };
  if (kind === "amount" || kind === "count") return kind === "amount" ? amountInput : countInput;
  if (kind === "money") return { ...moneyInput, placeholder: none };
  return kind === "signed" ? signedInput : textInput;
}

interface Props {
  of: Field;
  value: string | boolean;
  change: (value: string | boolean) => void;
}

export function FieldOf({ of: field, value, change }: Props) {
  const id = useId();
  const { label, kind, hint } = field;
  if (kind === "flag") {
    return (
      <div class="field flag">
        <input
          id={id}
          type="checkbox"
          checked={value === true}
          onChange={(event) => change(event.currentTarget.checked)}
        />
        <label for={id}>{label}</label>
        {hint && <p class="fine">{hint}</p>}
      </div>
    );
  }
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {kind === "choice" ? (
        <Choice id={id} of={field} value={String(value)} change={change} />
      ) : (
        <input
          id={id}
          {...inputOf(field)}
          required={field.isRequired === true}
          value={String(value)}
          autoComplete="off"
          spellcheck={false}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
      {hint && <p class="fine">{hint}</p>}
    </div>
  );
}

function Choice({ id, of: { choices = [], isRequired }, value, change }: Props & { id: string; value: string }) {
  return (
    <select
      id={id}
      required={isRequired === true}
      value={value}
      onChange={(event) => change(event.currentTarget.value)}
    >
      {!choices.some((one) => (typeof one === "string" ? one : one[0]) === "") && !isRequired && (
        <option value="">–</option>
      )}
      {choices.map((one) => {
        const [name, label] = typeof one === "string" ? [one, one] : one;
        return (
          <option key={name} value={name}>
            {label}
          </option>
        );
      })}
    </select>
  );
}

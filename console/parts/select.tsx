/** Fields of filters and forms: a choice, and a label above any field. */
import type { ComponentChildren, SelectHTMLAttributes } from "preact";
import { useId } from "preact/hooks";

export type Choice = string | readonly [value: string, label: string];

type Attributes = Pick<SelectHTMLAttributes, "id" | "value" | "required" | "aria-busy" | "aria-describedby">;

interface SelectProps extends Attributes {
  options: readonly Choice[];
  change: (value: string) => void;
}

export function Select({ options, change, ...attributes }: SelectProps) {
  return (
    <select {...attributes} onChange={(event) => change(event.currentTarget.value)}>
      {options.map((one) => {
        const [value, label] = typeof one === "string" ? [one, one] : one;
        return (
          <option key={value} value={value}>
            {label}
          </option>
        );
      })}
    </select>
  );
}

interface LabelledProps {
  label: string;
  isWide?: boolean;
  children: (id: string) => ComponentChildren;
}

/** A field of a filter below its label, whose id is that of the field. */
export function Labelled({ label, isWide, children }: LabelledProps) {
  const id = useId();
  return (
    <div class={isWide ? "filter wide" : "filter"}>
      <label for={id}>{label}</label>
      {children(id)}
    </div>
  );
}

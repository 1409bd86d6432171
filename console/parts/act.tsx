/**
 * An act: a button that opens a form, which shows the command that would do the same. An act that ends something says
 * what it ends, and asks for its name. Readers who may not do it get no button.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { announce } from "../core/announce.ts";
import { entryOf, type Given, type Input, perform, repeatKeys, tellChange, type VerbName } from "../core/client.ts";
import { completed, type Field, inputOf, isComplete, type Values, valuesOf, type WrittenField } from "../core/form.ts";
import { may } from "../core/session.ts";
import { Failed } from "./asked.tsx";
import { CommandLine } from "./command-line.tsx";
import { Dialog } from "./dialog.tsx";
import { FieldOf } from "./field.tsx";

/** How long a dialog waits for an answer with a secret. If the form is sent again, the idempotency key stays. */
const held_ms_max = 30_000;

interface Act<Name extends VerbName = VerbName> {
  label: string;
  verb: Name;
  given?: Partial<Input<Name>>;
  /** The fields of the form. The verb supplies what a field does not declare. */
  fields?: readonly WrittenField[];
  /** Converts the form's values into the verb's input, if the fields and the members of the input differ in name. */
  sends?: (input: Given) => Given;
  /** Returns the command to show, if the verb's own command is not the right one. */
  typed?: (input: Given) => string;
  /** The effect of the act, in a sentence. */
  says?: ComponentChildren;
  /** The thing that this act ends, whose name has to be typed. */
  ends?: { name: string; what: ComponentChildren };
  done: string;
  /** Called after the change; if the act has a result, once the reader has closed it. */
  onDone?: ((answer: never) => void) | undefined;
  /** Shows what the answer says, until the reader closes it. */
  result?: (answer: never) => ComponentChildren;
  /** Whether the result has a secret, which cannot be read again later. */
  hasSecret?: boolean;
  isPrimary?: boolean;
}

export function Act<Name extends VerbName>(act: Act<Name>) {
  const [isOpen, setOpen] = useState(false);
  if (!may(act.verb)) return null;
  const kind = act.ends ? "danger" : act.isPrimary ? "primary" : "";
  return (
    <>
      <button type="button" class={`small ${kind}`} onClick={() => setOpen(true)}>
        {act.label}
      </button>
      {isOpen && <ActDialog act={act as Act} close={() => setOpen(false)} />}
    </>
  );
}

function ActDialog({ act, close }: { act: Act; close: () => void }) {
  const { label, verb, given = {}, says, ends, done, onDone, result, hasSecret = false } = act;
  const fields = completed(act.fields ?? [], entryOf(verb)?.members ?? {});
  const [values, setValues] = useState<Values>(() => valuesOf(fields));
  const [typed, setTyped] = useState("");
  const [failure, setFailure] = useState<Error | null>(null);
  const [answer, setAnswer] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [keyOf] = useState(() => repeatKeys());
  const sent = (of: readonly Field[]) => {
    const written = inputOf(of, values, given as Given);
    return act.sends?.(written) ?? written;
  };
  const input = sent(fields);
  // A secret is shown once, in this dialog, so the dialog cannot be closed while the secret is on its way.
  const isHeld = isBusy && hasSecret;
  const isClosed = useRef(false);
  useEffect(
    () => () => {
      isClosed.current = true;
    },
    [],
  );
  const tell = (answered: unknown) => {
    tellChange(verb);
    onDone?.(answered as never);
  };
  const complete = sent(fields.filter((field) => isComplete(field, values[field.name] ?? "")));

  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setFailure(null);
    try {
      const signal = hasSecret ? AbortSignal.timeout(held_ms_max) : undefined;
      const answered = await perform(verb, input, { repeatKey: keyOf(input), signal });
      announce(done);
      if (result && !isClosed.current) setAnswer(answered);
      else {
        tell(answered);
        if (!isClosed.current) close();
      }
    } catch (problem) {
      setFailure(problem as Error);
    }
    setBusy(false);
  };

  if (answer !== null && result) {
    return (
      <Dialog title={done} close={close}>
        {result(answer as never)}
        <AtEnd calls={() => tell(answer)} />
        <footer>
          <button type="button" class="primary" onClick={close}>
            Done
          </button>
        </footer>
      </Dialog>
    );
  }
  return (
    <Dialog title={label} close={close} isHeld={isHeld}>
      <form onSubmit={submit}>
        {says && <p>{says}</p>}
        {ends && <p class="ends">{ends.what}</p>}
        {fields.map((field) => (
          <FieldOf
            key={field.name}
            of={field}
            value={values[field.name] ?? ""}
            change={(value) => setValues((before) => ({ ...before, [field.name]: value }))}
          />
        ))}
        {ends && (
          <FieldOf
            of={{ name: "confirm", label: `To confirm, type ${ends.name}`, kind: "text", isRequired: true }}
            value={typed}
            change={(value) => setTyped(String(value))}
          />
        )}
        {failure && <Failed failure={failure} />}
        {(fields.some(({ isRequired }) => isRequired) || ends) && <p class="fine">* has to be filled in</p>}
        <CommandLine verb={verb} input={complete} {...(act.typed && { text: act.typed(complete) })} />
        <footer>
          <button type="button" disabled={isHeld} onClick={close}>
            Cancel
          </button>
          <button type="submit" class={ends ? "danger" : "primary"} disabled={isBusy || (ends && typed !== ends.name)}>
            {label}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

/**
 * Calls the function once the dialog is closed. An earlier call could remove the dialog with its row: in a filtered
 * list that loads again, a rotated key may have no row any more.
 */
function AtEnd({ calls }: { calls: () => void }) {
  useEffect(() => calls, []);
  return null;
}

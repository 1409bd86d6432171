/** The page Connect: for each client, the block to copy that sets it up, with this server's address and a model. */
import { useState } from "preact/hooks";
import { query } from "../core/address.ts";
import { clients, modelNamed } from "../core/clients.ts";
import { isMember, may, membership, session } from "../core/session.ts";
import type { Membership } from "../core/taking-up.ts";
import { useAnswer } from "../core/use-answer.ts";
import { Show } from "../parts/asked.tsx";
import { Block } from "../parts/copy.tsx";
import { OwnKeys } from "../parts/keys.tsx";
import { Empty, Page, Section } from "../parts/section.tsx";
import { Labelled, Select } from "../parts/select.tsx";
import { TryModel } from "../parts/try-model.tsx";
import { ModelWindows, Windows } from "../parts/windows.tsx";

const usual = "qwen/qwen3-coder";

/** The chat models of the catalog, those with tools first; empty for readers who may not see the catalog. */
function useModels() {
  const { answer } = useAnswer("listModels", may("listModels") ? {} : null);
  const chat = answer?.data.filter(({ kind }) => kind === "chat") ?? [];
  return chat.toSorted((one, other) => Number(hasTools(other)) - Number(hasTools(one)));
}

const hasTools = ({ capabilities }: { capabilities: string[] }) => capabilities.includes("tools");

export function ConnectPage() {
  const own = membership.value;
  const known = useModels();
  const offered = own?.models ?? (known.length > 0 ? known.map(({ id }) => id) : null);
  const [typed, setModel] = useState<string | null>(null);
  const named = offered && [...offered, ...known.flatMap(({ aliases }) => aliases)];
  const chosen = typed ?? modelNamed(query.value.get("model"), named);
  const model = chosen ?? offered?.[0] ?? usual;
  // If there is no model to offer, the command picks the server's first model with tools.
  const isOffered = chosen !== null || offered !== null;
  const context_tokens = known.find(({ id, aliases }) => [id, ...aliases].includes(model))?.context_tokens ?? null;
  const base = session.value?.base_url ?? location.origin;
  return (
    <Page title="Connect" aside={<code>{base}/v1</code>}>
      {own && <Own of={own} />}
      <div class="filters">
        <Labelled label="Model" isWide>
          {(id) =>
            offered ? (
              <Select id={id} value={model} options={[...new Set([...offered, model])]} change={setModel} />
            ) : (
              <input
                id={id}
                value={model}
                spellcheck={false}
                onInput={(event) => setModel(event.currentTarget.value.trim())}
              />
            )
          }
        </Labelled>
        <p class="fine">Put the key into the variable SLUICE_KEY. The blocks have its name, never the key itself.</p>
      </div>
      <TryModel model={model} />
      {clients({ base, model, isOffered, context_tokens, isPerson: session.value?.kind === "person" }).map(
        ({ name, says, text }) => (
          <Section key={name} title={name} aside={says}>
            <Block text={text} label={`Settings of ${name}`} />
          </Section>
        ),
      )}
    </Page>
  );
}

/** The limits and keys of the reader's organization; members see only their own. */
function Own({ of: { organization } }: { of: Membership }) {
  return (
    <>
      {isMember.value ? <OwnLimits organization={organization} /> : <LimitsOf organization={organization} />}
      <OwnKeys organization={organization} />
    </>
  );
}

function LimitsOf({ organization }: { organization: string }) {
  const usage = useAnswer("readUsage", may("readUsage") ? { organization } : null);
  return (
    usage.answer && (
      <Section title={`Usage and limits of ${organization}`}>
        <Windows of={usage.answer} />
      </Section>
    )
  );
}

function OwnLimits({ organization }: { organization: string }) {
  const limits = useAnswer("findPersonLimits", { organization, person: session.value!.id! });
  return (
    <Section title="Your usage and limits" aside="all your keys and sign-ins share them">
      <Show of={limits}>
        {({ standing, model_standings: ofModels }) =>
          standing || Object.keys(ofModels).length > 0 ? (
            <>
              {standing && <Windows of={standing} />}
              <ModelWindows of={ofModels} />
            </>
          ) : (
            <Empty>Nothing limits you but what limits your keys, your team and your organization.</Empty>
          )
        }
      </Show>
    </Section>
  );
}

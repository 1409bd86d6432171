/** The ways to sign in: each issuer is a link, and an operator types a token. */
import { useEffect, useState } from "preact/hooks";
import { keptWanted } from "../core/kept.ts";
import { secret } from "../core/secret.ts";
import { begin, problem, signInWithToken, type WaysIn, waysIn } from "../core/session.ts";
import { Mark } from "../frame.tsx";
import { loadEarly } from "../later.tsx";
import { Block } from "../parts/copy.tsx";

export function SignIn() {
  const [ways, setWays] = useState<WaysIn | null>(null);
  useEffect(() => {
    document.title = "Sign in – Sluice";
    waysIn().then(setWays, (failure) => {
      problem.value = failure.message;
    });
  }, []);
  return (
    <main class="sign-in">
      <h1>
        <Mark /> Sluice
      </h1>
      {problem.value && (
        <p class="failed" role="alert">
          {problem.value}{" "}
          {secret() !== null && (
            <button type="button" class="small" onClick={() => begin(loadEarly)}>
              Try again
            </button>
          )}
        </p>
      )}
      {ways && ways.issuers.length > 0 && (
        <div class="issuers">
          {ways.issuers.map(({ name, href }) => (
            <a
              key={href}
              class="button primary"
              href={href}
              onClick={() => keptWanted.set(location.pathname + location.search)}
            >
              Sign in with {name}
            </a>
          ))}
        </div>
      )}
      {ways?.operator && <WithToken isOnlyWay={ways.issuers.length === 0} />}
      {ways?.embedded && (
        <div class="fine">
          <p>On the machine that it runs on, this command prints a link that signs you in:</p>
          <Block text="npm run sluice -- console" label="Command that prints a link" />
        </div>
      )}
    </main>
  );
}

function WithToken({ isOnlyWay }: { isOnlyWay: boolean }) {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    problem.value = null;
    await signInWithToken(token.trim()).catch((failure) => {
      problem.value = failure.message;
    });
    setBusy(false);
  };
  return (
    <form onSubmit={submit}>
      <div class="field">
        <label for="token">Operator token</label>
        <input
          id="token"
          type="password"
          required
          autoComplete="off"
          placeholder="slo_…"
          value={token}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </div>
      <button type="submit" class={isOnlyWay ? "primary" : undefined} disabled={isBusy}>
        Sign in
      </button>
    </form>
  );
}

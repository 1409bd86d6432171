/** The entry of the console: it takes up the session, and shows the page of the address. */
import "./core/language.ts";
import "./style/index.css";
import { render } from "preact";
import { followLinks } from "./core/address.ts";
import { begin, isKnown, session } from "./core/session.ts";
import { Frame } from "./frame.tsx";
import { loadEarly } from "./later.tsx";
import { SignIn } from "./pages/sign-in.tsx";

function Console() {
  if (!isKnown.value) return null;
  return session.value ? <Frame /> : <SignIn />;
}

followLinks();
render(<Console />, document.body);
begin(loadEarly);

/** The settings of the server that sends mail. */
import { choice, group, list, text, whole } from "./row.ts";

const domain = (description: string) =>
  text(
    {
      pattern: "^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$",
      patternErrorMessage: "must be the name of a domain, such as example.com, in ASCII",
    },
    description,
  );

export const smtp = group(
  {
    host: text(
      {
        isRequired: true,
        pattern: "^[A-Za-z0-9:]([A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?$",
        patternErrorMessage: "must be the name or the address of a host, such as smtp.example.com",
      },
      "The server that takes mail.",
    ),
    port: whole(
      { minimum: 1, maximum: 65_535, absent: "587; with `tls: implicit` 465, with `tls: off` 25" },
      "Its port.",
    ),
    tls: choice(
      ["starttls", "implicit", "off"],
      { default: "starttls" },
      "`starttls`: encrypted by STARTTLS, or not used. `implicit`: encrypted from the beginning. `off`: never, for a relay in a trusted network; a password then only on loopback.",
    ),
    ca_file: text(
      { minLength: 1, maxLength: 4096, absent: "the system's authorities" },
      "A file with the authorities that are trusted, in PEM.",
    ),
    user: text({ minLength: 1, maxLength: 512, absent: "no sign-in" }, "As whom Sluice signs in."),
    password: text(
      { minLength: 1, maxLength: 4096, writeOnly: true },
      `The user's password, from the environment: \`"\${SMTP_PASSWORD}"\`. Needed with \`user\`.`,
    ),
    from: text(
      {
        isRequired: true,
        maxLength: 254,
        pattern: "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@[A-Za-z0-9-]+([.][A-Za-z0-9-]+)+$",
        patternErrorMessage: "must be an address of mail in ASCII, such as sluice@example.com",
      },
      "The address from which mail comes.",
    ),
    from_name: text(
      {
        minLength: 1,
        maxLength: 100,
        pattern: "^[^\\u0000-\\u001f\\u007f]*$",
        patternErrorMessage: "must be text on one line",
        default: "Sluice",
      },
      "The name beside it.",
    ),
    recipient_domains: list(
      domain(""),
      { maxItems: 1000, uniqueItems: true, default: [] },
      "The only domains to whose addresses mail goes; empty: all.",
    ),
  },
  "The server that sends [notices by mail](notices.md#mail). Without it, Sluice sends no mail.",
);

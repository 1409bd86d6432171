/**
 * `sluice doctor` connects to the mail server as the service does, sends no mail, and reports problems and their
 * remedies.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { MailServer } from "../../../src/features/notices/mail/smtp.ts";
import { authority } from "../../harness/certificates.ts";
import { endedAfterEach } from "../../harness/endings.ts";
import { mailboxes } from "../../harness/mail-server.ts";
import { doctorOf, shell } from "./shell.ts";

setDefaultTimeout(60_000);

const ending = endedAfterEach();
const newMailbox = mailboxes(ending);

async function finding(server: MailServer | null) {
  const { configuration } = shell().services;
  const smtp = server && { ...server, recipient_domains: [...server.recipient_domains] };
  const { code, out, err, of } = await doctorOf(
    shell({ configuration: async () => ({ ...(await configuration()), smtp }) }),
  );
  expect(`${out}${err}`).not.toContain("s3cret");
  return { code, of: of("mail server") };
}

describe("doctor", () => {
  const known = authority();
  const { key, certificate: cert } = known.issue(["localhost", "127.0.0.1"]);
  const ca = known.certificate;
  const user = { user: "sluice", password: "right" };

  test("says nothing of a mail server where none is set", async () => {
    expect((await finding(null)).of).toBeUndefined();
  });

  test.each([
    ["starttls", "encrypted by STARTTLS, and signs 'sluice' in"],
    ["implicit", "encrypted, and signs 'sluice' in"],
  ] as const)("signs in by %s, and sends no mail", async (tls, says) => {
    const { settings, mails, connections } = await newMailbox({ tls, key, cert, ca, ...user });
    expect(await finding(settings)).toEqual({
      code: 0,
      of: { check: "mail server", status: "ok", says: `127.0.0.1:${settings.port} responds, ${says}` },
    });
    expect([connections(), mails.length]).toEqual([1, 0]);
  });

  test("says what is wrong, and what to do about it", async () => {
    const signed = await newMailbox({ tls: "starttls", key, cert, ca, ...user });
    const plain = await newMailbox();
    const busy = await newMailbox({
      onConnect: (_, done) => done(Object.assign(new Error("busy"), { responseCode: 421 })),
    });
    const gone = await newMailbox();
    gone.stop();
    for (const [settings, wrong] of [
      [
        { ...signed.settings, password: "s3cret" },
        /refuses the user or the password; correct smtp\.user and smtp\.password/,
      ],
      [
        { ...plain.settings, user: "sluice", password: "s3cret" },
        /refuses the user or the password; .*or leave both out/,
      ],
      [{ ...signed.settings, ca: null }, /has a certificate that is not trusted; set smtp\.ca_file/],
      [{ ...plain.settings, tls: "starttls" }, /offers no STARTTLS; use a port that does, such as 587/],
      [busy.settings, /refuses mail now \(421\); ask who runs it/],
      [gone.settings, /cannot be reached; correct smtp\.host and smtp\.port/],
      [{ ...plain.settings, host: "mail.invalid" }, /^mail\.invalid:\d+ cannot be reached/],
    ] as const) {
      const { code, of } = await finding(settings);
      expect([code, of]).toEqual([1, { check: "mail server", status: "problem", says: expect.stringMatching(wrong) }]);
    }
    expect([...signed.mails, ...plain.mails]).toEqual([]);
  });
});

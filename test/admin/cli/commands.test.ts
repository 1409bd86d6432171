import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Prompts } from "../../../src/admin/cli/prompts.ts";
import type { Services } from "../../../src/admin/cli/services.ts";
import { isKey } from "../../../src/core/auth/credential.ts";
import { expectMisuse, expectRefused, shell } from "./shell.ts";

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe("what scripts rely on", () => {
  test("org create prints one JSON object with id, slug and plan", async () => {
    const { typed } = shell();
    const { code, out, err } = await typed(["org", "create", "acme", "--name", "Acme, Inc.", "--json"]);
    expect([code, err]).toEqual([0, ""]);
    expect(out.split("\n")).toHaveLength(2);
    expect(JSON.parse(out)).toEqual({
      id: expect.stringMatching(/^org_[0-9a-f]{32}$/),
      slug: "acme",
      former_slugs: [],
      name: "Acme, Inc.",
      status: "active",
      plan: "starter",
      anchor_at: expect.stringMatching(instant),
      next_anchor: null,
      calendar: null,
      next_calendar: null,
      extra_usage: { enabled: false, cap: null },
      key_lifetime_max_days: null,
      key_unused_max_days: null,
      keeps_content: true,
      created_at: expect.stringMatching(instant),
      closed_at: null,
      version: expect.any(Number),
    });
    expect(await shell().json("org create b --plan unlimited --json")).toMatchObject({ name: "b", plan: "unlimited" });
  });

  test("key create prints one JSON object with id and key; without --scopes it has all three", async () => {
    const { typed, json } = shell();
    await typed("org create acme");
    const made = await json("key create --org acme --name app --json");
    expect(made).toMatchObject({
      id: expect.stringMatching(/^key_[0-9a-f]{32}$/),
      organization: "acme",
      scopes: ["models:read", "inference:create", "usage:read"],
      models: null,
      expires_at: null,
    });
    expect(isKey(made.key as string)).toBe(true);
    const narrow = await json(
      "key create --org acme --name app --scopes models:read,inference:create --scopes usage:read --models acme/writer-1 --expires 2030-01-31T12:00:00Z --json",
    );
    expect(narrow).toMatchObject({
      scopes: ["models:read", "inference:create", "usage:read"],
      models: ["acme/writer-1"],
      expires_at: "2030-01-31T12:00:00.000Z",
    });
  });

  test("suspend, resume, show and the lists answer in the same forms", async () => {
    const { typed, json } = shell();
    const made = await json("org create acme --json");
    expect(await json("org suspend acme --json")).toEqual({ ...made, status: "suspended", version: 2 });
    const resumed = { ...made, version: 3 };
    expect(await json(`org resume ${made.id} --json`)).toEqual(resumed);
    expect(await json("org show acme --json")).toEqual({ ...resumed, standing: null });
    expect(await json("org list --json")).toEqual([{ ...resumed, standing: null }] as never);
    const { key: _secret, ...key } = await json("key create --org acme --name app --json");
    expect(await json(`key show ${key.id} --json`)).toEqual({ ...key, team: null, standing: null });
    for (const list of ["key list --json", "key list --org acme --json"])
      expect(await json(list)).toEqual([{ ...key, standing: null }] as never);
    expect(await json("audit list --limit 1 --json")).toMatchObject([{ actor: "cli:ann", action: "key.create" }]);
    expect(await json("plan list --json")).toMatchObject([{ name: "starter" }, { name: "pro" }, { name: "unlimited" }]);
    expect(await json("plan show unlimited --json")).toMatchObject({ name: "unlimited", session: null });
    expect(await typed("org list --json")).toMatchObject({ err: "" });
  });

  test("an empty list is [] for scripts and a hint for people", async () => {
    const { typed } = shell();
    for (const list of ["org list", "key list", "audit list"]) {
      expect((await typed(`${list} --json`)).out).toBe("[]\n");
      expect((await typed(list)).out).not.toBe("");
    }
  });

  test("what is refused or fails ends with 1 and one line on stderr that says why", async () => {
    const it = shell();
    await it.typed("org create acme");
    await expectRefused(it, [
      ["org create acme --json", "already exists"],
      ["org create Acme --json", "must be a slug"],
      ["org create b --plan gold", "starter, pro, unlimited"],
      ["org show nobody", "no organization"],
      ["key create --org nobody --name x --json", "no organization"],
      ["key create --org acme --name x --scopes admin", "must be one of 'models:read'"],
      ["key create --org acme --name x --scopes= --json", "of 1 to 10 items"],
      ["key create --org acme --name x --expires yesterday", "must be an instant"],
      ["key create --org acme --name x --models acme/nothing", "no model"],
      ["key rotate key_1", "no key"],
      ["key rotate key_1 --grace tomorrow", "must be a duration"],
      ["key revoke key_1", "no key"],
      ["plan show gold", "no plan"],
    ]);
  });

  test("an outage, too, is one line, however many its message has", async () => {
    const { typed } = shell({
      openStore: () => Promise.reject(new Error("cannot use the database at db:5432\nconnection refused\u001b[2J")),
    });
    const { code, err } = await typed("org list");
    expect([code, err]).toEqual([1, "sluice: cannot use the database at db:5432; connection refused?[2J\n"]);
  });

  test("wrong use ends with 2, and nothing is done", async () => {
    const it = shell();
    await expectMisuse(it, [
      [],
      ["org"],
      ["nothing"],
      ["org", "create", "a", "b"],
      ["org", "create", "acme", "--bogus"],
      ["org", "create", "acme", "--plan"],
      ["key", "create", "--name", "x"],
      ["key", "show"],
      ["audit", "list", "--limit", "0"],
      ["audit", "list", "--limit", "many"],
      ["simulator", "--port", "65536"],
      ["healthcheck", "--url", "nonsense"],
    ]);
    expect(await it.directory.listOrganizations()).toEqual([]);
  });

  test("help and version are no errors", async () => {
    const { typed } = shell();
    expect(await typed("--version")).toEqual({ code: 0, out: "1.2.3 (schema 0009_things)\n", err: "" });
    expect(await typed("-V")).toEqual(await typed("--version"));
    for (const words of ["--help", "help", "help key", "key create --help", "org help create"]) {
      const { code, out, err } = await typed(words);
      expect([words, code, err]).toEqual([words, 0, ""]);
      expect(out).toContain("Usage: sluice");
    }
  });

  test("serve answers with the server's own exit code", async () => {
    expect((await shell({ serve: async () => 0 }).typed("serve")).code).toBe(0);
    expect((await shell({ serve: async () => 1 }).typed("serve")).code).toBe(1);
  });
});

/** Creates a shell with the organization `acme`, which has one key. */
async function keyed() {
  const it = shell();
  await it.typed("org create acme");
  return { ...it, made: await it.json("key create --org acme --name app --json") };
}

describe("a secret", () => {
  test("is printed once, with the sentence that it cannot be shown again, and by no other command", async () => {
    const { typed, json, directory } = shell();
    await typed("org create acme");
    const { out } = await typed("key create --org acme --name app");
    const secret = out.match(/slk_[0-9A-Za-z]{38}/g);
    expect(secret).toHaveLength(1);
    expect(out).toContain("cannot be shown again");
    const [key] = await json("key list --json").then((keys) => keys as unknown as { id: string }[]);
    const rotated = (await typed(`key rotate ${key!.id}`)).out;
    expect(rotated.match(/slk_[0-9A-Za-z]{38}/g)).toHaveLength(1);
    expect(rotated).toContain(`sluice key revoke ${key!.id} --old`);
    for (const words of [`key show ${key!.id}`, "key list", "audit list", `key revoke ${key!.id}`, "org show acme"]) {
      for (const form of ["", " --json"]) {
        const shown = await typed(words + form);
        expect(shown.code).toBe(0);
        expect(shown.out + shown.err).not.toMatch(/slk_[0-9A-Za-z]{10}/);
      }
    }
    expect(JSON.stringify(await directory.listAudit({ limit: 100 }))).not.toMatch(/slk_[0-9A-Za-z]{10}/);
  });

  test("people see its head and tail, and of a revoked key that it is revoked", async () => {
    const { typed, made } = await keyed();
    const { key, id } = made;
    const shown = `${(key as string).slice(0, 8)}…${(key as string).slice(-4)}`;
    for (const words of ["key list", `key show ${id}`]) expect((await typed(words)).out).toContain(shown);
    await typed(`key revoke ${id}`);
    expect((await typed(`key show ${id}`)).out).not.toContain("active");
  });

  test("rotation says until when the old one works", async () => {
    const { typed, json, made } = await keyed();
    const { id } = made;
    expect((await typed(`key rotate ${id} --grace 1h`)).out).toContain("works until 2026-11-21 04:00:00 UTC");
    // The first rotation's old secret ends sooner, and the second rotation's old secret in 24 hours.
    expect((await typed(`key rotate ${id}`)).out).toContain("works until 2026-11-22 03:00:00 UTC");
    const { secrets } = (await json(`key show ${id} --json`)) as { secrets: { expires_at: string | null }[] };
    expect(secrets.map(({ expires_at }) => expires_at)).toEqual([
      null,
      "2026-11-22T03:00:00.000Z",
      "2026-11-21T04:00:00.000Z",
    ]);
    expect((await typed(`key rotate ${id} --grace 0s`)).out).toContain("no longer works");
  });
});

describe("questions", () => {
  function asking(answers: (string | boolean)[], extra: Parameters<typeof shell>[0] = {}) {
    const asked: string[] = [];
    const next = (message: string) => {
      asked.push(message);
      return answers.shift() as never;
    };
    const prompts: Prompts = {
      text: async ({ message, check }) => {
        const answer = next(message);
        expect(check("")).not.toBeNull();
        expect(check(answer)).toBeNull();
        return answer;
      },
      select: async ({ message }) => next(message),
      confirm: async (message) => next(message),
    };
    const it = shell({ prompts: async () => prompts, ...extra });
    Object.assign(it.services.terminal, { interactive: true, width: 100 });
    return { ...it, asked };
  }

  test("are asked on a terminal for what is missing, and for nothing else", async () => {
    const { typed, asked, directory } = asking(["acme", "acme", "app"]);
    expect((await typed("org create")).code).toBe(0);
    expect((await typed("key create")).code).toBe(0);
    expect(asked).toHaveLength(3);
    const [organization] = await directory.listOrganizations();
    expect(await directory.pageKeys({ organizationId: organization!.id, limit: 9 })).toMatchObject({
      items: [{ name: "app" }],
    });
    await typed("key create --org acme --name two");
    expect(asked).toHaveLength(3);
  });

  test("a revocation is confirmed, and no means no", async () => {
    const { typed, asked, json } = asking([false, true]);
    await typed("org create acme");
    const { id } = await json("key create --org acme --name app --json");
    expect(await typed(`key revoke ${id}`)).toMatchObject({ code: 1, err: "sluice: Nothing was revoked.\n" });
    expect((await json(`key show ${id} --json`)).revoked_at).toBeNull();
    expect((await typed(`key revoke ${id}`)).code).toBe(0);
    expect((await json(`key show ${id} --json`)).revoked_at).not.toBeNull();
    expect(asked).toHaveLength(2);
    expect((await typed(`key revoke ${id} --yes`)).code).toBe(0);
    expect(asked).toHaveLength(2);
  });

  test("are never asked with --json, nor without a terminal", async () => {
    const { typed, json } = asking([], { prompts: () => Promise.reject(new Error("nobody may be asked")) });
    expect((await typed("org create --json")).code).toBe(2);
    expect((await typed("key create --json")).code).toBe(2);
    await typed("org create acme");
    const { id } = await json("key create --org acme --name app --json");
    expect((await typed(`key revoke ${id} --json`)).code).toBe(0);
  });

  test("without an organization there is nothing to choose from, and the way on is named", async () => {
    const { typed } = asking([]);
    const { code, err } = await typed("key create");
    expect([code, err]).toEqual([1, expect.stringContaining("sluice org create")]);
  });
});

describe("tables", () => {
  async function listed(width: number | null, color = false) {
    const it = shell();
    Object.assign(it.services.terminal, { width, color });
    await it.typed("org create acme");
    await it.typed(["key", "create", "--org", "acme", "--name", `a rather long name ${"und so weiter ".repeat(5)}`]);
    await it.typed(["key", "create", "--org", "acme", "--name", "名前 🔑"]);
    return (await it.typed("key list")).out;
  }

  test("fit the screen, whatever its width, and ids stay whole", async () => {
    for (const width of [20, 40, 80, 100, 120, 200]) {
      const out = await listed(width);
      if (width >= 80) for (const line of out.split("\n")) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(width);
      expect(out.match(/key_[0-9a-f]{32}/g)).toHaveLength(2);
      if (width < 60) expect(out).toContain("inference:create");
    }
  });

  test("are a line a row where nothing has to fit, with no colour", async () => {
    const lines = (await listed(null)).trimEnd().split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(/^ID +ORG +NAME +STATE +OWNER +USED +KEY +SCOPES +LAST USED +ENDS$/);
    expect(lines.join("")).not.toContain("\u001b");
  });

  test("are coloured on a screen only", async () => {
    expect(await listed(200, true)).toContain("\u001b[1m");
  });

  test("names that people chose cannot move the cursor", async () => {
    const it = shell();
    await it.typed("org create acme");
    const [organization] = await it.directory.listOrganizations();
    const hostile = { id: "org_2", slug: "x", name: "a\u001b[2Jb", actor: "x" };
    await it.directory.createOrganization({ ...organization!, ...hostile });
    expect((await it.typed("org list")).out).not.toContain("\u001b");
  });
});

describe("files and services", () => {
  test("migrate says what it applied", async () => {
    const { typed, json } = shell({ migrate: async () => ({ applied: ["0001_baseline", "0002_ledger"], newer: [] }) });
    expect(await json("migrate --json")).toEqual({ applied: ["0001_baseline", "0002_ledger"] });
    expect((await typed("migrate")).out).toBe("Applied: 0001_baseline, 0002_ledger.\n");
    expect((await shell().typed("migrate")).out).toBe("The database is up to date.\n");
  });

  test("openapi prints the contract as it is", async () => {
    const { typed } = shell();
    expect((await typed("openapi")).out).toBe('{"openapi":"3.1.0"}\n');
    const file = join(mkdtempSync(join(tmpdir(), "sluice-openapi-")), "openapi.json");
    expect((await typed(["openapi", "--write", file])).out).toBe(`Wrote ${file}.\n`);
    expect(readFileSync(file, "utf8")).toBe('{"openapi":"3.1.0"}\n');
    expect(await typed(["openapi", "--write", "/does/not/exist"])).toMatchObject({ code: 1, out: "" });
  });

  test("init writes the draft, replaces no file unasked, and asks the engine with the key of the environment", async () => {
    const folder = mkdtempSync(join(tmpdir(), "sluice-init-"));
    const file = join(folder, "sluice.yaml");
    const asked: unknown[] = [];
    const { typed } = shell({
      environment: { SLUICE_UPSTREAM_KEY: "engine-secret" },
      draftConfiguration: async (engines, protocol) => {
        asked.push({ engines, protocol });
        return { yaml: "upstreams: {}\n", models: ["local/tiny"], schema: "{}\n" };
      },
    });
    const words = ["init", "--upstream", "http://127.0.0.1:11434/v1", "--output", file];
    const first = await typed(words);
    expect([first.code, first.out]).toEqual([0, expect.stringContaining("1 model: local/tiny")]);
    expect(readFileSync(file, "utf8")).toBe("upstreams: {}\n");
    const engine = { name: "main", url: "http://127.0.0.1:11434/v1", apiKey: "engine-secret" };
    const engines = [{ ...engine, keyVariable: "SLUICE_UPSTREAM_KEY" }];
    expect(asked).toEqual([{ engines, protocol: "openai-chat" }]);
    writeFileSync(file, "mine");
    const again = await typed(words);
    expect([again.code, again.err]).toEqual([1, expect.stringContaining("--force")]);
    expect(readFileSync(file, "utf8")).toBe("mine");
    expect(asked).toHaveLength(1);
    expect(JSON.parse((await typed([...words, "--force", "--json"])).out)).toEqual({ file, models: ["local/tiny"] });
    expect(readFileSync(file, "utf8")).toBe("upstreams: {}\n");
    await typed([...words, "--force", "--protocol", "openai-responses"]);
    expect(asked.at(-1)).toMatchObject({ protocol: "openai-responses" });
    expect(await typed([...words, "--force", "--protocol", "grpc"])).toMatchObject({ code: 2, out: "" });
  });

  test("init takes several engines, each with its name and its own key", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "sluice-init-")), "sluice.yaml");
    const asked: unknown[] = [];
    const draftConfiguration: Services["draftConfiguration"] = async (engines) => {
      asked.push(engines);
      return { yaml: "upstreams: {}\n", models: ["local/tiny"], schema: "{}\n" };
    };
    const words = (...upstreams: string[]) => [
      ...["init", "--output", file, "--force"],
      ...upstreams.flatMap((one) => ["--upstream", one]),
    ];
    const own = shell({ environment: { SLUICE_UPSTREAM_KEY_GPU_2: "second" }, draftConfiguration });
    expect((await own.typed(words("gpu-1=http://10.0.0.7:8000/v1", "gpu-2=http://10.0.0.8:8000/v1"))).code).toBe(0);
    expect((await own.typed(words("http://10.0.0.7:8000/v1?a=b", "http://10.0.0.8:8000/v1"))).code).toBe(0);
    expect(asked).toMatchObject([
      [
        { name: "gpu-1", url: "http://10.0.0.7:8000/v1", apiKey: null },
        { name: "gpu-2", url: "http://10.0.0.8:8000/v1", apiKey: "second", keyVariable: "SLUICE_UPSTREAM_KEY_GPU_2" },
      ],
      [{ name: "engine-1", url: "http://10.0.0.7:8000/v1?a=b" }, { name: "engine-2" }],
    ]);
    expect((await own.typed(words("a=http://x/v1", "a=http://y/v1"))).err).toContain("two engines have the name a");
    const shared = shell({ environment: { SLUICE_UPSTREAM_KEY: "first" }, draftConfiguration });
    expect((await shared.typed(words("a=http://x/v1", "b=http://y/v1"))).err).toContain("SLUICE_UPSTREAM_KEY_A");
    expect(asked).toHaveLength(2);
  });

  test("the simulator runs until it gets a signal", async () => {
    const told = Promise.withResolvers<void>();
    const seen: unknown[] = [];
    const { typed, services } = shell({
      simulate: async (options) => {
        seen.push(options);
        return { url: "http://127.0.0.1:9000/v1", stop: async () => void seen.push("stopped") };
      },
      untilStopped: () => told.promise,
    });
    const printed = Promise.withResolvers<string>();
    services.terminal.out = printed.resolve;
    const ended = typed("simulator --port 9000");
    expect(await printed.promise).toBe("sluice simulator is serving on http://127.0.0.1:9000/v1\n");
    told.resolve();
    expect((await ended).code).toBe(0);
    expect(seen).toEqual([{ host: "127.0.0.1", port: 9000 }, "stopped"]);
  });
});

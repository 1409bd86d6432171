const tree = process.argv[2]!;
const { kinds } = await import(`${tree}/test/postgres/databases.ts`);
const { operatorPort } = await import(`${tree}/test/http/operator-port.ts`);
const { shell } = await import(`${tree}/test/cli/shell.ts`);
const { administration } = await import(`${tree}/src/postgres/administration.ts`);
const { ledger } = await import(`${tree}/src/postgres/ledger.ts`);
const { refusedRequests } = await import(`${tree}/src/postgres/refused.ts`);
const owned = await kinds.find((k: any) => k.kind === "pglite").open();
const port = await operatorPort(owned);
const { db } = owned;
const names = new Map<string, string>();
const norm = (text: string) =>
  text
    .replace(/\b(org|key|team|op|req|resp)_[0-9a-f]{32}\b/g, (id) => {
      if (/0{30}/.test(id)) return id;
      if (!names.has(id)) names.set(id, `${id.split("_")[0]}#${names.size}`);
      return names.get(id)!;
    })
    .replace(/\b(slk|slo)_[0-9A-Za-z]{38}\b/g, "$1_SECRET").replace(/whsec_[\w-]+/g, "whsec_S")
    .replace(/"(prefix|suffix)":\s*"[^"]*"/g, '"$1":"P"').replace(/sl[ko]_\w{4}…\w{4}/g, "PREFIX")
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, (at) => /^(2030|2040|2027)/.test(at) ? at : "AT")
    .replace(/\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?( UTC)?/g, "AT")
    .replace(/"?[0-9a-f]{64}"?/g, "HASH").replace(/127\.0\.0\.1:\d+/g, "HOST");
const out: string[] = [];
const saved: Record<string, string> = {};
const fill = (s: string) => s.replace(/\{\{(\w+)\}\}/g, (_, k) => saved[k] ?? "MISSING");
async function ask(method: string, path: string, body?: unknown, more: { role?: string; headers?: any; save?: string; raw?: string } = {}) {
  const url = `${port.url}/management/v1${fill(path)}`;
  const text = more.raw ?? (body === undefined ? undefined : fill(JSON.stringify(body)));
  const r = await fetch(url, { method, headers: { authorization: `Bearer ${port.tokens[more.role ?? "admin"]}`, ...(text === undefined ? {} : { "content-type": "application/json" }), ...more.headers }, ...(text === undefined ? {} : { body: text }) });
  const answer = await r.text();
  if (more.save) { try { saved[more.save] = JSON.parse(answer).id; } catch {} }
  const h = ["etag", "content-type", "content-disposition"].map((n) => r.headers.get(n)).join("|");
  out.push(norm(`${method} ${path} ${JSON.stringify(body ?? null)} ${JSON.stringify(more)}\n   ${r.status} ${h} ${answer}`));
}
const O = "/organizations", K = "/keys", T = "/teams", P = "/plans";
const roles = ["viewer", "organization-admin"];
await ask("POST", O, { slug: "one", name: "One & Only", plan: "pro" }, { save: "one", headers: { "idempotency-key": "a" } });
await ask("POST", O, { slug: "one", name: "One & Only", plan: "pro" }, { headers: { "idempotency-key": "a" } });
await ask("POST", O, { slug: "two" }, { headers: { "idempotency-key": "a" } });
await ask("POST", O, { slug: "two" }, { headers: { "idempotency-key": "a b" } });
for (const body of [{}, { slug: "" }, { slug: "A b" }, { slug: "acme" }, { slug: "x", plan: "gold" }, { slug: "x", name: "" }, { slug: "x", name: 7 }, { slug: "x", stray: 1 }, [], null, "text", { slug: "y", name: null, plan: null }, { slug: " z ", name: "  Zed  " }, { slug: "q", name: "a\nb" }]) await ask("POST", O, body);
await ask("POST", O, undefined, { raw: "{" });
await ask("POST", O, undefined, { raw: "" });
for (const q of ["", "?limit=2", "?limit=0", "?limit=x", "?status=active&limit=1", "?status=lost", "?plan=pro", "?stray=1", "?cursor=nowhere", "?cursor={{one}}", "?limt=1"]) for (const role of ["admin", "organization-admin"]) await ask("GET", O + q, undefined, { role });
for (const x of ["one", "{{one}}", "nobody", "acme"]) for (const role of ["admin", ...roles]) { await ask("GET", `${O}/${x}`, undefined, { role }); await ask("GET", `${O}/${x}/usage`, undefined, { role }); await ask("GET", `${O}/${x}/key-limits`, undefined, { role }); await ask("GET", `${O}/${x}/notices`, undefined, { role }); }
for (const [path, method, bodies] of [
  ["suspend", "POST", [{}, { stray: 1 }]], ["resume", "POST", [{}]],
  ["plan", "PUT", [{ plan: "starter" }, { plan: null }, { plan: "gold" }, {}, { plan: 7 }, { plan: "pro" }]],
  ["anchor", "PUT", [{ anchor: "2027-01-01" }, { anchor: "2027-02-30" }, { anchor: "soon" }, { anchor: "1999-01-01" }, {}]],
  ["extra-usage", "PUT", [{ cap_units: 5 }, { cap_units: null }, { cap_units: 0 }, { cap_units: "x" }, {}]],
  ["policies", "PATCH", [{ key_lifetime_max_days: 90, key_unused_max_days: 30 }, {}, { keeps_content: null }, { key_lifetime_max_days: 0 }, { key_unused_max_days: null, keeps_content: true }, { keeps_content: "no" }]],
  ["key-limits", "PATCH", [{ limits: { week: 7 } }, { limits: {} }, { limits: { week: null } }, { limits: { weak: 1 } }, { limits: null }, {}, { limits: { week: 1e16 } }]],
  ["notices", "PUT", [{}, { url: "ftp://x" }, { url: "https://hooks.example.com/a", shares: [90, 50, 50] }, { shares: [0] }, { key_expiry_days: 91 }, { new_secret: true }, { url: "https://a:b@x.example/" }]],
  ["usage/adjustments", "POST", [{ window: "month", units: 7, reason: "test" }, { window: "session", units: -1, reason: "r" }, { window: "all", units: 3, reason: "r" }, { window: "x", units: 1, reason: "r" }, { window: "month", units: 0, reason: "r" }, { window: "month", units: 1.5, reason: "r" }, { window: "month", units: 1, reason: "" }, {}]],
] as const) for (const b of bodies) for (const role of ["admin", ...(b === bodies[0] ? roles : [])]) await ask(method, `${O}/one/${path}`, b, { role });
await ask("POST", `${O}/one/notices/remove`, {}); await ask("POST", `${O}/one/notices/remove`, {}); await ask("POST", `${O}/nobody/notices/remove`, {});
for (const b of [{ slug: "uno" }, { slug: "acme" }, {}, { name: "Uno" }, { slug: "B" }, { slug: null }, { name: "x".repeat(300) }]) await ask("PATCH", `${O}/{{one}}`, b);
await ask("PATCH", `${O}/uno`, { name: "Stale" }, { headers: { "if-match": '"1"' } });
await ask("PATCH", `${O}/uno`, { name: "Stale" }, { headers: { "if-match": "x" } });
await ask("PATCH", `${O}/uno`, { name: "Star" }, { headers: { "if-match": "*" } });
await ask("GET", `${O}/one`); await ask("PATCH", `${O}/nobody`, { name: "x" });
await ask("POST", K, { organization: "uno", name: "app", scopes: ["usage:read", "models:read"], models: ["acme/writer-1"], expires: "2026-12-31", owner: "ann", labels: { b: "2", a: "1" }, addresses: ["10.0.0.0/8", "2001:db8::/64", "10.0.0.0/8"] }, { save: "key", headers: { "idempotency-key": "k" } });
await ask("POST", K, { organization: "acme", name: "acme app" }, { save: "akey", role: "organization-admin" });
for (const b of [{}, { organization: "uno" }, { organization: "uno", name: " " }, { organization: "nobody", name: "x" }, { organization: "uno", name: "x", scopes: [] }, { organization: "uno", name: "x", scopes: ["admin"] }, { organization: "uno", name: "x", models: ["writer-1"] }, { organization: "uno", name: "x", models: [] }, { organization: "uno", name: "x", expires: "2020-01-01" }, { organization: "uno", name: "x", expires: "soon" }, { organization: "uno", name: "x", addresses: ["nowhere"] }, { organization: "uno", name: "x", addresses: ["::1"] }, { organization: "uno", name: "x", labels: { "No good": "1" } }, { organization: "uno", name: "x", labels: { a: "" } }, { organization: "uno", name: "x", team: "none" }, { organization: "uno", name: "x", limits: { week: -1 } }, { organization: "uno", name: "x", limits: { day: 1 } }, { organization: "uno", name: "x", expires: "2040-01-01" }]) await ask("POST", K, b);
for (const q of ["", "?organization=uno", "?organization=nobody", "?state=active", "?state=x", "?unused_for=30d", "?unused_for=soon", "?unused_for=400d", "?limit=1", "?cursor=key_0"]) for (const role of ["admin", "organization-admin"]) await ask("GET", K + q, undefined, { role });
for (const role of ["admin", ...roles]) for (const x of ["{{key}}", "{{akey}}", "key_0", "slk_" + "x".repeat(38)]) { await ask("GET", `${K}/${x}`, undefined, { role }); await ask("GET", `${K}/${x}/budget`, undefined, { role }); }
for (const b of [{ name: "after" }, {}, { owner: null, labels: { a: null, c: "3" }, expires: null, models: null, addresses: null }, { scopes: null }, { scopes: ["inference:create"] }, { labels: {} }, { owner: "" }, { name: null }, { addresses: [] }]) await ask("PATCH", `${K}/{{key}}`, b);
await ask("PATCH", `${K}/{{key}}`, { name: "stale" }, { headers: { "if-match": '"1"' } });
await ask("POST", T, { organization: "uno", name: "research", limits: { week: 9, concurrent_requests: 2 }, key_limits: { session: 3 } }, { save: "team", headers: { "idempotency-key": "t" } });
await ask("POST", T, { organization: "uno", name: "research" }); await ask("POST", T, { organization: "uno" }); await ask("POST", T, { organization: "uno", name: "x", limits: { weak: 1 } }); await ask("POST", T, { organization: "uno", name: "x", limits: 7 });
for (const q of ["", "?organization=uno", "?organization=nobody", "?limit=1", "?cursor=x"]) for (const role of ["admin", "organization-admin"]) await ask("GET", T + q, undefined, { role });
for (const role of ["admin", ...roles]) for (const x of ["{{team}}", "{{team}}?organization=acme", "research?organization=uno", "research", "none?organization=uno"]) await ask("GET", `${T}/${x}`, undefined, { role });
for (const b of [{ limits: { month: 8, week: null } }, {}, { name: "science", key_limits: null }, { name: "" }, { limits: { weak: 1 } }, { limits: { week: 0 } }, { key_limits: { session: null } }, { organization: "uno", name: null }]) await ask("PATCH", `${T}/{{team}}`, b);
await ask("PATCH", `${T}/{{team}}`, { name: "x" }, { headers: { "if-match": '"1"' } });
for (const b of [{ team: "science", limits: { week: 4 } }, { team: null }, { team: "none" }, { limits: { weak: 1 } }, {}, { limits: null, team: "{{team}}" }]) await ask("PATCH", `${K}/{{key}}/budget`, b);
await ask("PATCH", `${K}/{{key}}/budget`, { limits: { week: 1 } }, { headers: { "if-match": '"1"' } });
await ask("PATCH", `${O}/uno/key-limits`, { limits: { week: 5 } }, { headers: { "if-match": '"1"' } });
await ask("POST", `${T}/{{team}}/remove`, {}); await ask("POST", `${T}/{{team}}/remove`, {});
for (const b of [{ grace: "1h" }, { grace: "x" }, { grace: "400d" }, {}, { grace: null }, { grace: "0s" }]) await ask("POST", `${K}/{{key}}/rotate`, b);
await ask("POST", `${K}/{{key}}/revoke`, { old: true }); await ask("POST", `${K}/{{key}}/revoke`, { old: "x" }); await ask("POST", `${K}/{{key}}/revoke`, {}); await ask("POST", `${K}/{{key}}/rotate`, {}); await ask("PATCH", `${K}/{{key}}`, { name: "late" });
await ask("GET", P); for (const role of roles) await ask("GET", P, undefined, { role });
for (const b of [{ name: "gold", session: 1000, requests_per_minute: 5 }, { name: "gold" }, { name: "pro" }, { name: "-x" }, { name: "x", week: 0 }, {}, { name: "x", weak: 1 }]) await ask("POST", P, b);
for (const x of ["gold", "pro", "nobody"]) { await ask("GET", `${P}/${x}`); await ask("PUT", `${P}/${x}/limits`, { week: 77, session: null }); await ask("GET", `${P}/${x}/history?limit=1`); await ask("GET", `${P}/${x}/history?cursor=x`); await ask("PUT", `${P}/${x}/limits`, { week: 1 }, { headers: { "if-match": '"9"' } }); }
await ask("GET", `${P}/gold/history`, undefined, { role: "organization-admin" });
await ask("PUT", `${O}/uno/plan`, { plan: "gold" }); await ask("POST", `${P}/gold/remove`, {}); await ask("PUT", `${O}/uno/plan`, { plan: "pro" }); await ask("POST", `${P}/gold/remove`, {}); await ask("POST", `${P}/gold/remove`, {});
for (const b of [{ name: "bob", role: "viewer", expires: "2030-01-01" }, { name: "bob", role: "viewer" }, { name: "a b", role: "admin" }, { name: "x", role: "root" }, { name: "x", role: "organization-admin" }, { name: "x", role: "admin", organization: "acme" }, { name: "x", role: "organization-admin", organization: "nobody" }, {}, { name: "x", role: "viewer", expires: "2020-01-01" }]) await ask("POST", "/operators", b);
await ask("GET", "/operators?limit=1"); await ask("GET", "/operators?cursor=x"); for (const role of roles) await ask("GET", "/operators", undefined, { role });
for (const x of ["bob", "nobody", "slo_" + "x".repeat(38)]) { await ask("GET", `/operators/${x}`); await ask("POST", `/operators/${x}/rotate`, { grace: "1h" }); await ask("POST", `/operators/${x}/rotate`, { grace: "z" }); await ask("POST", `/operators/${x}/revoke`, { old: true }); await ask("POST", `/operators/${x}/revoke`, {}); await ask("POST", `/operators/${x}/rotate`, {}); }
for (const b of [{ full: true }, { full: false }, {}, { full: "x" }]) await ask("POST", "/usage/check", b);
for (const q of ["", "?by=organization,team,key,model,operation,outcome,day", "?by=key,model", "?by=month", "?by=hour", "?by=hour,day", "?by=colour", "?by=", "?from=2026-13", "?from=2040-01", "?from=yesterday", "?from=2026-01-01&to=2025-01-01", "?from=2026-01-01T00:30:00Z", "?from=1990", "?format=csv&by=organization,month", "?format=focus", "?format=focus&by=month", "?format=focus&by=key", "?format=xml", "?organization=uno", "?organization=nobody", "?by=team, key"]) for (const role of ["admin", "organization-admin"]) await ask("GET", `/usage/report${q}`, undefined, { role });
const requestId = `req_${Bun.randomUUIDv7().replaceAll("-", "")}`; saved.req = requestId;
await refusedRequests(db).keep([{ requestId, organizationId: saved.one, keyId: saved.key, operation: "messages", age_ms: 0, model: null, stream: null, errorCode: "usage_limit_reached" }]);
for (const x of ["{{req}}", "req_0", "req_" + "0".repeat(32), "abc"]) for (const role of ["admin", ...roles]) await ask("GET", `/requests/${x}`, undefined, { role });
for (const q of ["?limit=3", "?order=oldest&limit=2", "?order=x", "?cursor=5&limit=1", "?cursor=x", "?organization=uno&limit=2", "?actor=cli:test&limit=2", "?action=key.create&limit=2", "?limit=1001", "/head"]) for (const role of ["admin", ...roles]) await ask("GET", `/audit${q}`, undefined, { role });
await ask("POST", `${O}/two/close`, {}); await ask("POST", `${O}/uno/close`, {}); await ask("POST", `${O}/uno/close`, {}); await ask("PUT", `${O}/uno/plan`, { plan: "pro" }); await ask("POST", K, { organization: "uno", name: "late" }); await ask("POST", T, { organization: "uno", name: "late" });
// CLI
const book = ledger(db, { recovery: "checkpoint" });
const it = shell({ now_ms: Date.now, openStore: async () => ({ administration: administration(db), operators: administration(db), plans: administration(db), notices: administration(db), ledger: book, refused: refusedRequests(db), close: async () => {} }) });
async function typed(words: string | string[], save?: string) {
  for (const json of [false, true]) {
    const list = typeof words === "string" ? fill(words).split(" ") : words.map(fill);
    if (json && /create|rotate|export/.test(list.slice(0, 2).join(" "))) continue;
    const { code, out: o, err } = await it.typed(json ? [...list, "--json"] : list);
    out.push(norm(`$ ${JSON.stringify(words)} ${json}\n   ${code}\n${o}${err}`));
    const id = /\b(?:key|team)_[0-9a-f]{32}/.exec(o)?.[0]; if (save && id) saved[save] = id;
  }
}
for (const c of ["org create cli --plan pro", "org list", "org show cli", "org show nobody", "org suspend cli", "org resume cli", "org plan cli starter", "org plan cli --none", "org plan cli gold", "org plan cli pro", "org anchor cli 2027-01-01", "org anchor cli 2027-02-30", "org extra-usage cli on --cap 5", "org extra-usage cli off", "org extra-usage cli on", "org policy cli", "org policy cli --key-lifetime 90d --key-unused 30", "org policy cli --key-unused none", "org key-limits cli", "org key-limits cli --limit week=5", "org key-limits cli --limit weak=5", "org rename cli --name CLI", "org rename cli", "org close cli"]) await typed(c);
await typed(["key", "create", "--org", "cli", "--name", "build server", "--label", "a=b", "--scopes", "usage:read", "--expires", "2026-12-30"], "ck");
await typed(["team", "create", "--org", "cli", "--name", "science lab", "--limit", "week=9", "--key-limit", "session=4"], "ct");
for (const c of ["key list", "key list --org cli", "key list --state revoked", "key list --unused-for 30d", "key show {{ck}}", "key show key_1", "key update {{ck}} --owner ann --label c=d --allow-from 10.0.0.0/8", "key update {{ck}} --team {{ct}}", "key update {{ck}} --limit week=5 --no-team", "key update {{ck}}", "key update {{ck}} --name x --team y", "key update {{ck}} --models all --expires never --no-owner", "key update {{ck}} --if-version 1 --name y", "key rotate {{ck}} --grace 1h", "key rotate {{ck}} --grace 0s", "key rotate {{ck}} --grace x", "key revoke {{ck}} --old", "key revoke {{ck}}", "key create", "team list", "team list --org cli", "team show {{ct}}", "team show nobody", "team update {{ct}} --limit month=5 --name lab", "team update {{ct}} --if-version 1 --name z", "team remove {{ct}}", "team remove {{ct}}", "plan list", "plan show pro", "plan show nobody", "plan create silver --limit week=5", "plan update silver --limit week=none,month=7", "plan history silver", "plan history pro", "plan remove silver", "plan remove silver", "usage show cli", "usage show nobody", "usage adjust cli --window month --units 500 --reason test", "usage adjust cli --window session --units -1 --reason test", "usage adjust cli --window all --units 5 --reason test", "usage check", "usage check --full", "usage report", "usage report --by organization,day", "usage report --by key,model,hour --org cli", "usage report --csv", "usage report --focus", "usage report --by colour", "usage report --from 2026-13", "request show {{req}}", "request show req_0", "audit list --limit 5", "audit list --org cli --limit 3", "audit head", "audit verify", "notice show cli", "notice set cli --url https://hooks.example.com/x --shares 50,90", "notice show cli", "notice set cli --url ftp://x", "notice remove cli", "notice remove cli", "operator create cliop --role viewer", "operator create cliop --role viewer", "operator create x --role organization-admin", "operator list", "operator rotate cliop --grace 1h", "operator revoke cliop --old", "operator revoke cliop", "operator revoke nobody", "org close cli --yes"]) await typed(c);
await Bun.write(process.argv[3]!, out.join("\n") + "\n");
await port.stop(); await book.close(); await owned.drop(); process.exit(0);

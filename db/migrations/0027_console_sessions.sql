-- Sessions of the console: its pages send a secret besides the cookie, and operators sign in, too (docs/console.md).

-- The page gets the secret once, for a code that the sign-in gave to this browser.
alter table browser_session
  add column code_hash bytea check (length(code_hash) = 32),
  add column secret_hash bytea check (length(secret_hash) = 32);

-- A browser in which an operator is signed in, or whoever opened the link of a node on the own machine.
create table operator_session (
  hash bytea primary key check (length(hash) = 32),
  secret_hash bytea not null check (length(secret_hash) = 32),
  -- The operator's token, by its hash: the session ends with it. Null: opened by a link.
  token_hash bytea check (length(token_hash) = 32),
  -- The system's user who printed the link.
  local_user text,
  created_at timestamptz not null,
  used_at timestamptz not null,
  check (num_nonnulls(token_hash, local_user) = 1)
);

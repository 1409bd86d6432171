-- Whose a key is, what it is for, from where it may be used, and who made and last used it.

alter table api_key
  add column owner text,
  add column labels jsonb not null default '{}',
  -- Addresses and networks; null allows all.
  add column allowed_addresses text[] check (cardinality(allowed_addresses) > 0),
  add column created_by text,
  add column last_used_from text;

-- The audit log knows who created the keys of earlier versions.
update api_key set created_by = entry.actor
  from audit_entry as entry
  where entry.action = 'key.create' and entry.subject = 'key_' || replace(api_key.id::text, '-', '');

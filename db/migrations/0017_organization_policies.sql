-- The rules of organizations for their keys, and how an organization is renamed and closed (docs/design/keys.md,
-- Organizations). A node that does not know of closing serves a closed organization as a suspended one.

alter table organization
  drop constraint organization_status_check,
  add constraint organization_status_check check (status in ('active', 'suspended', 'closed')),
  -- How long a secret works from its making, and a key from its last use. Null does not limit.
  add column key_lifetime_max_days integer check (key_lifetime_max_days between 1 and 3650),
  add column key_unused_max_days integer check (key_unused_max_days between 1 and 3650),
  add column closed_at timestamptz check ((closed_at is not null) = (status = 'closed'));

-- Slugs that an organization had before, and those of organizations that are gone. None is ever another's.
create table organization_slug (
  slug text primary key,
  organization_id uuid not null
);
create index organization_slug_of_organization on organization_slug (organization_id);

-- Rises with each change, so that whoever changes can say what they have read.
alter table api_key add column version bigint not null default 1;
alter table team add column version bigint not null default 1;

-- An operator outlives the organization that it was of: the audit log names it.
alter table operator drop constraint operator_organization_id_fkey;

-- Drops what is left of an organization that was closed so long ago that its records are gone: all but its slugs, which
-- stay taken, and the audit log. Of any other it drops nothing, whoever asks. Answers whether it did.
create function organization_forget(closed uuid) returns boolean
  language plpgsql volatile
  as $$
  begin
    perform from organization where id = closed and closed_at < store_now() - interval '15 months' for update;
    if not found or exists (select from kept_response where organization_id = closed) then return false; end if;
    insert into organization_slug (slug, organization_id) select slug, id from organization where id = closed
      on conflict do nothing;
    update operator set revoked_at = store_now() where organization_id = closed and revoked_at is null;
    delete from kept_response_total where organization_id = closed;
    delete from notice where organization_id = closed;
    delete from notice_hook where organization_id = closed;
    delete from key_default where owner_id = closed or owner_id in (select id from team where organization_id = closed);
    delete from limit_change where subject_id = closed
      or subject_id in (select subject_id from usage_subject where organization_id = closed);
    delete from usage_now where subject_id = closed
      or subject_id in (select subject_id from usage_subject where organization_id = closed);
    delete from usage_subject where organization_id = closed;
    delete from usage_anchor where organization_id = closed;
    delete from key_secret where key_id in (select id from api_key where organization_id = closed);
    delete from api_key where organization_id = closed;
    delete from team where organization_id = closed;
    delete from organization where id = closed;
    return true;
  end $$;

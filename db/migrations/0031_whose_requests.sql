-- Whose a request was is what its key says: a key has the person that it was made for, or none, for good. So records need no
-- column of their own, and what was used stays with the person who used it (docs/design/metering.md, Roll-ups).
create function api_key_keeps_its_person() returns trigger
  language plpgsql
  as $$
  begin
    raise exception 'The person of a key never changes: its requests are of that person. Make a new key.'
      using errcode = 'check_violation';
  end $$;

create trigger api_key_keeps_its_person before update of person_id on api_key
  for each row when (old.person_id is distinct from new.person_id)
  execute function api_key_keeps_its_person();

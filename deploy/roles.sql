-- What the role that serves may do: docs/operating.md, Separate database roles. Run it as the owner of the tables, after
-- every `sluice migrate`. It can be run again at any time, also while nodes serve.
--
-- The role is called sluice_run here. It cannot create, alter, drop or truncate anything, change or delete a record or an
-- entry of the audit log, or touch what migrations were applied.
begin;

revoke create on schema public from public;
revoke all on all tables in schema public from sluice_run;
grant usage on schema public to sluice_run;
grant select on all tables in schema public to sluice_run;

-- Who exists.
grant insert, update on organization, api_key, key_secret, operator, operator_secret to sluice_run;
grant insert on organization_slug to sluice_run;
grant insert, delete on administration_repeat to sluice_run;
grant insert on audit_entry to sluice_run;
grant update on audit_head to sluice_run;

-- Who comes in by an issuer.
grant insert, update, delete on person to sluice_run;
grant insert, update, delete on membership to sluice_run;
grant insert, update, delete on browser_session, operator_session, sign_in, refresh_token, device_request, use_count to sluice_run;
-- Access tokens that ended.
grant delete on key_secret to sluice_run;

-- What they may use: a node publishes the plans of its file.
grant insert, update, delete on plan to sluice_run;
grant insert, update on plan_file to sluice_run;

-- Which engines are out of service.
grant insert, update, delete on drained_engine to sluice_run;

-- Which processes serve.
grant insert, update, delete on fleet_process to sluice_run;

-- What is used. A record is written once and never changed.
grant insert on usage_record, usage_opening to sluice_run;
grant insert, update, delete on usage_now, usage_past, usage_hold, usage_tally, usage_seal, usage_recount to sluice_run;
grant insert, update, delete on usage_hour, usage_day, usage_total, usage_rolled to sluice_run;
grant insert on usage_hour_added, usage_day_added, usage_total_added to sluice_run;
grant insert, update on usage_audit to sluice_run;
grant insert, delete on usage_anchor, usage_refusal, usage_lost to sluice_run;
grant insert on usage_timeline to sluice_run;
grant update (currency) on usage_ledger to sluice_run;

-- What keys, teams and people may use.
grant insert, update on team, usage_subject, limit_change to sluice_run;
grant insert, update, delete on limit_value to sluice_run;
grant update on limit_change_head to sluice_run;
grant insert, update, delete on limit_request, invitation to sluice_run;
grant delete on usage_opening to sluice_run;

-- What they are told.
grant insert, update, delete on notice_destination, notice, notice_condition, mail_recipient to sluice_run;

-- What is kept for a while.
grant insert, delete on kept_response to sluice_run;
grant insert, update, delete on kept_answer, kept_answer_entry, answer_note to sluice_run;
grant insert, update on kept_response_total, input_calibration, output_calibration to sluice_run;

-- Upkeep makes partitions of records, drops those older than 13 months, and summarises indexes anew. Only an owner can do
-- that, so these functions run as their owner. They make an empty month, and drop one that is due, whatever they are asked
-- for.
alter function usage_partition(uuid) security definer;
alter function usage_partition(uuid) set search_path = public, pg_temp;
revoke execute on function usage_partition(uuid) from public;
grant execute on function usage_partition(uuid) to sluice_run;
alter function usage_drop_month(text) security definer;
alter function usage_drop_month(text) set search_path = public, pg_temp;
revoke execute on function usage_drop_month(text) from public;
grant execute on function usage_drop_month(text) to sluice_run;
alter function usage_narrow(integer, integer) security definer;
alter function usage_narrow(integer, integer) set search_path = public, pg_temp;
revoke execute on function usage_narrow(integer, integer) from public;
grant execute on function usage_narrow(integer, integer) to sluice_run;

-- What is left of an organization goes fifteen months after it was closed, and not before, whoever asks.
alter function organization_forget(uuid) security definer;
alter function organization_forget(uuid) set search_path = public, pg_temp;
revoke execute on function organization_forget(uuid) from public;
grant execute on function organization_forget(uuid) to sluice_run;

commit;

-- cdc_sync: write every change of a table's columns into the log, for Debezium to send on topic <topic.prefix>.message.
-- May be run again at any time. Needs a superuser (on Amazon RDS a member of rds_superuser). Debezium sends logical
-- messages with the plug-in pgoutput from Postgres 14 on; this script itself runs on Postgres 10 and later.
-- A command never fails because of it: what goes wrong here is a WARNING, and a message that says so.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;

-- Whoever changes a table has these functions run, with the rights of who installs them: so they are his alone, and in
-- a schema that nobody else can change. What they call is the server's own; nothing that a user may define is run.
DO $owner$
DECLARE
    one record;
BEGIN
    SELECT r.rolname, r.rolsuper INTO one FROM pg_namespace n JOIN pg_roles r ON r.oid = n.nspowner
    WHERE n.nspname = {schema_text};
    IF FOUND AND NOT one.rolsuper AND one.rolname <> current_user THEN
        RAISE EXCEPTION 'schema % belongs to role %, who could change what runs with other people''s rights; drop it, '
            'or give it to a superuser, and look at what is in it', {schema_text}, one.rolname;
    END IF;
END
$owner$;

CREATE SCHEMA IF NOT EXISTS {schema};
REVOKE ALL ON SCHEMA {schema} FROM PUBLIC;

-- Made anew, for a function that is replaced keeps its owner and who may run it.
DROP EVENT TRIGGER IF EXISTS cdc_sync_ddl_command_end;
DROP EVENT TRIGGER IF EXISTS cdc_sync_sql_drop;
DROP FUNCTION IF EXISTS {schema}.capture_ddl();
DROP FUNCTION IF EXISTS {schema}.touched_tables();
DROP FUNCTION IF EXISTS {schema}.write_command(oid, json, text, text, text);
DROP FUNCTION IF EXISTS {schema}.missing_value(oid, smallint);

-- The tables whose columns the command at hand may have changed, as they are found behind it.
CREATE FUNCTION {schema}.touched_tables() RETURNS oid[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $touched$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE command AS (
            SELECT DISTINCT c.classid, c.objid FROM pg_event_trigger_ddl_commands() c
            WHERE c.command_tag NOT IN ('COMMENT', 'SECURITY LABEL', 'GRANT', 'REVOKE') AND c.objid IS NOT NULL
        ), root AS (
            SELECT c.objid AS relid FROM command c WHERE c.classid = 'pg_class'::regclass
            UNION
            SELECT t.oid FROM pg_class t JOIN command c ON t.relnamespace = c.objid
            WHERE c.classid = 'pg_namespace'::regclass
            UNION
            SELECT t.oid FROM pg_class t JOIN command c ON t.reloftype = c.objid
            WHERE c.classid = 'pg_type'::regclass
            UNION
            SELECT t.oid FROM pg_class t JOIN pg_class k ON t.reloftype = k.reltype JOIN command c ON k.oid = c.objid
            WHERE c.classid = 'pg_class'::regclass AND k.reltype <> 0
        ), family AS (
            SELECT relid FROM root
            UNION
            SELECT i.inhrelid FROM pg_inherits i JOIN family f ON i.inhparent = f.relid
        )
        SELECT relid FROM family);
END
$touched$;

-- What rows read in a column that were there before it, as JSON. Types that users made become text by the server's own
-- functions: JSON of them may be a cast of theirs.
CREATE FUNCTION {schema}.missing_value(relation oid, number smallint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $missing$
DECLARE
    base oid;
    above oid := (SELECT a.atttypid FROM pg_attribute a WHERE a.attrelid = relation AND a.attnum = number);
BEGIN
    IF current_setting('server_version_num')::int < 110000 THEN
        RETURN NULL; -- it keeps none
    END IF;
    WHILE above IS NOT NULL LOOP
        base := above;
        above := (SELECT t.typbasetype FROM pg_type t WHERE t.oid = base AND t.typtype = 'd');
    END LOOP;
    RETURN (
        SELECT CASE WHEN base < 16384 THEN nullif((to_jsonb(a) -> 'attmissingval' -> 0)::text, 'null')
                    ELSE to_json(array_to_string(a.attmissingval, ''))::text END
        FROM pg_attribute a WHERE a.attrelid = relation AND a.attnum = number AND a.attmissingval IS NOT NULL);
END
$missing$;

-- One message: what a table has behind the command, beside what the caller says that it had before.
CREATE FUNCTION {schema}.write_command(touched oid, before json, cluster text, tag text, query text)
RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $write$
BEGIN
    IF EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = touched AND {stale}) THEN
        RAISE EXCEPTION 'another transaction changed table % meanwhile, which this one''s snapshot hides', touched::regclass;
    END IF;
    PERFORM pg_logical_emit_message(true, 'cdc_sync', convert_to(json_build_object(
        'v', 1, 'kind', 'command', 'cluster', cluster, 'tag', tag, {state}, 'before', before,
        'query', query)::text, 'UTF8'))
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid = touched AND {captured};
END
$write$;

-- STABLE is what makes this one see the catalogue as it was before the command: its queries have the command's own
-- snapshot. The two functions above are VOLATILE and see what the command did.
CREATE FUNCTION {schema}.capture_ddl() RETURNS event_trigger
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $capture$
DECLARE
    touched oid[];
    cluster text;
    query text := left(current_query(), 300);
BEGIN
    -- A dump restored elsewhere takes this function along and gives other numbers to its columns.
    BEGIN
        cluster := (SELECT system_identifier::text FROM pg_control_system());
    EXCEPTION WHEN OTHERS THEN
        cluster := NULL;
    END;
    BEGIN
        IF TG_EVENT = 'sql_drop' THEN
            -- Columns of other tables go with a type, a domain, a function or an extension that is dropped.
            touched := ARRAY(
                SELECT DISTINCT d.objid FROM pg_event_trigger_dropped_objects() d
                WHERE d.classid = 'pg_class'::regclass AND d.objsubid <> 0 AND NOT d.is_temporary);
            PERFORM pg_logical_emit_message(true, 'cdc_sync', convert_to(json_build_object(
                'v', 1, 'kind', 'drop', 'cluster', cluster, 'tag', TG_TAG,
                'schema', d.schema_name, 'table', d.object_name, 'relid', d.objid::bigint, 'query', query)::text, 'UTF8'))
            FROM pg_event_trigger_dropped_objects() d
            WHERE d.classid = 'pg_class'::regclass AND d.objsubid = 0 AND d.object_type = 'table' AND NOT d.is_temporary;
        ELSE
            touched := {schema}.touched_tables();
        END IF;
        PERFORM {schema}.write_command(t.relid, (
            SELECT json_build_object({before})
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = t.relid AND NOT {stale}), cluster, TG_TAG, query)
        FROM unnest(touched) AS t (relid);
    EXCEPTION WHEN OTHERS THEN
        RAISE WARNING 'cdc_sync could not record this %: %', TG_TAG, SQLERRM;
        PERFORM pg_logical_emit_message(true, 'cdc_sync', convert_to(json_build_object(
            'v', 1, 'kind', 'failed', 'cluster', cluster, 'tag', TG_TAG, 'reason', SQLERRM, 'query', query,
            'relids', CASE WHEN TG_EVENT = 'ddl_command_end' THEN to_json(touched::bigint[]) END)::text, 'UTF8'));
    END;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'cdc_sync could not even report that it could not record this %: %', TG_TAG, SQLERRM;
END
$capture$;

REVOKE ALL ON FUNCTION {schema}.capture_ddl(), {schema}.touched_tables(), {schema}.missing_value(oid, smallint),
    {schema}.write_command(oid, json, text, text, text) FROM PUBLIC;

CREATE EVENT TRIGGER cdc_sync_ddl_command_end ON ddl_command_end EXECUTE PROCEDURE {schema}.capture_ddl();
CREATE EVENT TRIGGER cdc_sync_sql_drop ON sql_drop EXECUTE PROCEDURE {schema}.capture_ddl();
-- In sessions with session_replication_role = replica too, as those of restores and of replication tools.
ALTER EVENT TRIGGER cdc_sync_ddl_command_end ENABLE ALWAYS;
ALTER EVENT TRIGGER cdc_sync_sql_drop ENABLE ALWAYS;

COMMIT;

-- The baseline: what every table has now. A transaction of its own, because only what begins behind the commit above is
-- sure to fire the triggers.
BEGIN;
SET LOCAL lock_timeout = '2s';
SET LOCAL search_path = pg_catalog, pg_temp;
DO $baseline$
DECLARE
    installed timestamptz := clock_timestamp();
    cluster text;
    one record;
BEGIN
    BEGIN
        cluster := (SELECT system_identifier::text FROM pg_control_system());
    EXCEPTION WHEN OTHERS THEN
        cluster := NULL;
    END;
    LOOP
        PERFORM pg_stat_clear_snapshot();
        SELECT count(*) AS number, string_agg(a.pid::text, ', ') AS pids INTO one FROM pg_stat_activity a
        WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
          AND a.backend_type = 'client backend' AND a.xact_start < installed;
        EXIT WHEN one.number = 0;
        IF clock_timestamp() > installed + interval '10 seconds' THEN
            RAISE WARNING 'cdc_sync: % transactions are older than the event triggers, which may miss what they change. '
                'Run this script again when they have ended (pids %)', one.number, one.pids;
            EXIT;
        END IF;
        PERFORM pg_sleep(0.1);
    END LOOP;
    -- The lock, which pg_dump takes too, keeps columns as they are until the message is committed; it stops no reading
    -- and no writing.
    FOR one IN
        SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
        WHERE {captured} ORDER BY n.nspname, c.relname
    LOOP
        BEGIN
            EXECUTE format('LOCK TABLE ONLY %I.%I IN ACCESS SHARE MODE', one.nspname, one.relname);
            PERFORM pg_logical_emit_message(true, 'cdc_sync', convert_to(json_build_object(
                'v', 1, 'kind', 'baseline', 'cluster', cluster, 'tag', 'BASELINE', {state}, 'query', '')::text, 'UTF8'))
            FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.oid = one.oid AND n.nspname = one.nspname AND c.relname = one.relname;
        EXCEPTION WHEN OTHERS THEN
            RAISE WARNING 'cdc_sync: no baseline for table %.%: %', one.nspname, one.relname, SQLERRM;
        END;
    END LOOP;
END
$baseline$;
COMMIT;

-- cdc_sync: remove the event triggers. The last message tells readers that nothing is known from here on.
BEGIN;
DROP EVENT TRIGGER IF EXISTS cdc_sync_ddl_command_end;
DROP EVENT TRIGGER IF EXISTS cdc_sync_sql_drop;
DROP FUNCTION IF EXISTS {schema}.capture_ddl();
DROP FUNCTION IF EXISTS {schema}.touched_tables();
DROP FUNCTION IF EXISTS {schema}.write_command(oid, json, text, text, text);
DROP FUNCTION IF EXISTS {schema}.missing_value(oid, smallint);
DO $removal$
BEGIN
    DROP SCHEMA IF EXISTS {schema} RESTRICT;
EXCEPTION WHEN dependent_objects_still_exist THEN
    RAISE WARNING 'cdc_sync: the schema is not empty and stays';
END
$removal$;
SELECT pg_logical_emit_message(true, 'cdc_sync', convert_to('{"v": 1, "kind": "uninstalled"}', 'UTF8'));
COMMIT;

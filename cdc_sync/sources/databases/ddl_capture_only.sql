-- cdc_sync: nobody but a superuser and the event triggers may write a logical message, unless he was granted it by name.
DO $only$
DECLARE
    one oid;
BEGIN
    FOR one IN SELECT p.oid FROM pg_catalog.pg_proc p
        WHERE p.proname = 'pg_logical_emit_message' AND p.pronamespace = 'pg_catalog'::pg_catalog.regnamespace
    LOOP
        EXECUTE pg_catalog.format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one::pg_catalog.regprocedure);
    END LOOP;
END
$only$;

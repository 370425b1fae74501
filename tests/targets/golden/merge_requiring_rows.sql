MERGE INTO `lake`.`a.b`.`t` t USING view s ON t.`no` = s.c5 AND t.`id` = s.c1
WHEN MATCHED AND s.deleted THEN DELETE
WHEN MATCHED AND NOT s.deleted THEN UPDATE SET `id` = s.c1, `na``me` = s.c2, `no` = s.c5
WHEN NOT MATCHED AND NOT s.deleted AND s.created THEN INSERT (`id`, `na``me`, `no`) VALUES (s.c1, s.c2, s.c5)
WHEN NOT MATCHED AND NOT s.created THEN INSERT (`id`, `na``me`, `no`) VALUES (CASE WHEN raise_error('missing_row') IS NULL THEN s.c1 END, s.c2, s.c5)

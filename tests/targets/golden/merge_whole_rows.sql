MERGE INTO `lake`.`a.b`.`t` t USING view s ON s.deleted AND t.`number` <=> s.c1 AND t.`te``xt` <=> s.c2 AND t.`list` <=> s.c3 AND t.`members` <=> s.c5 AND t.`bytes` <=> s.c8 AND t.`exact` <=> s.c9
WHEN MATCHED THEN DELETE
WHEN NOT MATCHED AND NOT s.deleted THEN INSERT (`number`, `te``xt`, `list`, `members`, `bytes`, `exact`) VALUES (s.c1, s.c2, s.c3, s.c5, s.c8, s.c9)

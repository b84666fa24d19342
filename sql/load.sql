-- step: derive_lines
DELETE FROM _group_fixes WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _group_fixes SELECT * FROM _group_fixes_now;
-- step: derive_runs
DELETE FROM _runs WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _runs SELECT * FROM _runs_now;
-- step: derive_spans
DELETE FROM _spans WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _spans SELECT * FROM _spans_now;

-- step: derive_lines
DELETE FROM _group_fixes WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _group_fixes SELECT * FROM _group_fixes_now;
-- step: derive_runs
DELETE FROM _runs WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _runs SELECT * FROM _runs_now;
-- step: derive_spans
DELETE FROM _spans WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _spans SELECT * FROM _spans_now;
-- step: derive_lineage
DELETE FROM _reports WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _reports SELECT * FROM _reports_now;
DELETE FROM _report_spans WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _report_spans SELECT * FROM _report_spans_now;
DELETE FROM _restores WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _restores SELECT * FROM _restores_now;
DELETE FROM _history WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _history SELECT * FROM _history_now;
-- step: derive_fates
DELETE FROM _held_lines WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _held_lines SELECT * FROM _held_lines_now;
DELETE FROM _held WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _held SELECT * FROM _held_now;
DELETE FROM _deeds WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _deeds SELECT * FROM _deeds_now;
DELETE FROM _fates WHERE experiment IN (SELECT experiment FROM _touched);
INSERT INTO _fates SELECT * FROM _fates_now;

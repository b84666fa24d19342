-- restart_abandonment: one row per dispatch that was lost to a restore and reported by it, counted once.
-- Key: experiment, span_id. Example: ('x', 'b2', 60, 1, 'a1:216', 'a1', '7', 2, 0, 12, 40, 28, 3).
CREATE OR REPLACE VIEW restart_abandonment AS
SELECT p.experiment, p.run, p.t AS first_reported_t, p.times_reported, s.span_id, s.run AS dispatched_run, s.group_key,
       s.generation_index, s.attempt, s.start_t, s.cut_t, s.thrown_away_s, s.never_saved_s
FROM restart_reports p
JOIN attempt_spans s ON s.experiment = p.experiment AND s.span_id = p.span_id
WHERE p.verdict = 'counted' AND s.lost_how = 'reported';  -- which is so of all that count: said, it is soon found

COMMENT ON VIEW restart_abandonment IS 'one row per dispatch lost to a restore and reported by it, counted once';
COMMENT ON COLUMN restart_abandonment.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN restart_abandonment.run IS 'restoring run';
COMMENT ON COLUMN restart_abandonment.first_reported_t IS 'moment of its first report by that run';
COMMENT ON COLUMN restart_abandonment.times_reported IS 'lines of that run that report it';
COMMENT ON COLUMN restart_abandonment.span_id IS 'dispatch, as in attempt_spans';
COMMENT ON COLUMN restart_abandonment.dispatched_run IS 'run that dispatched it';
COMMENT ON COLUMN restart_abandonment.group_key IS 'group';
COMMENT ON COLUMN restart_abandonment.generation_index IS 'sibling within its group, from 0';
COMMENT ON COLUMN restart_abandonment.attempt IS 'attempt at the sibling, from 0';
COMMENT ON COLUMN restart_abandonment.start_t IS 'moment of the dispatch';
COMMENT ON COLUMN restart_abandonment.cut_t IS 'moment the restored snapshot holds';
COMMENT ON COLUMN restart_abandonment.thrown_away_s IS 'attempt-seconds it ran before the cut';
COMMENT ON COLUMN restart_abandonment.never_saved_s IS 'attempt-seconds it ran after the cut; a lower bound';

-- runs: one row per process that wrote lines. Key: experiment, run.
-- Example: run b2 restored snapshot 4 of run a1, cut at 40: ('x', 'b2', 'a1', 60, 90, 5, 4, 40, 0.87).
CREATE OR REPLACE VIEW runs AS
WITH busy AS (
    SELECT run_no, fsum(greatest(0, end_t - start_t)) AS span_s FROM _spans GROUP BY run_no
)
SELECT r.experiment, r.run, p.parent_run, r.first_t, r.last_t, r.events, p.snapshot_step AS restored_step, p.cut_t,
       coalesce(b.span_s, 0) / nullif(greatest(0, r.last_t - r.first_t), 0) AS mean_in_flight
FROM _runs r
LEFT JOIN _restores p USING (run_no)
LEFT JOIN busy b USING (run_no);

COMMENT ON VIEW runs IS 'one row per process that wrote lines';
COMMENT ON COLUMN runs.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN runs.run IS 'process';
COMMENT ON COLUMN runs.parent_run IS 'run whose snapshot it restored; NULL where it restored none, or none is known';
COMMENT ON COLUMN runs.first_t IS 'moment of its first line';
COMMENT ON COLUMN runs.last_t IS 'greatest moment of its lines';
COMMENT ON COLUMN runs.events IS 'lines it wrote';
COMMENT ON COLUMN runs.restored_step IS 'step of the snapshot it restored';
COMMENT ON COLUMN runs.cut_t IS 'moment that snapshot holds';
COMMENT ON COLUMN runs.mean_in_flight IS 'rollouts running at once, on average from first to last line: attempt-seconds per wall-second';

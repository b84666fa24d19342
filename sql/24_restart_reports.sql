-- restart_reports: one row per attempt that a restoring run abandons with reason restart, however many lines say so.
-- Key: experiment, run, group_key, generation_index, attempt.
CREATE OR REPLACE VIEW restart_reports AS
WITH matched AS (
    SELECT m.run_no, m.first_seq, x.run AS span_run, m.span_seq,
           x.last_act_t > coalesce(r.first_dispatch_t, r.restore_t) AS went_on,
           f.lost_by_run = r.run AND f.lost_how = 'reported' AS counted
    FROM _matched_reports m
    JOIN _restores r ON r.run_no = m.run_no
    JOIN _runs x ON x.run_no = m.span_no
    LEFT JOIN _fates f ON f.run_no = m.span_no AND f.seq = m.span_seq
)
SELECT p.experiment, p.run, p.t, p.group_key, p.generation_index, p.attempt,
       m.span_run || ':' || m.span_seq AS span_id,
       CASE WHEN r.parent_run IS NULL OR p.group_key IS NULL OR p.attempt IS NULL THEN 'unresolved'
            WHEN m.span_run IS NULL THEN 'never_dispatched'
            WHEN m.went_on THEN 'not_stopped'
            WHEN m.counted THEN 'counted'
            ELSE 'repeated' END AS verdict,
       p.times AS times_reported
FROM _reports p
LEFT JOIN _restores r ON r.run_no = p.run_no
LEFT JOIN matched m ON m.run_no = p.run_no AND m.first_seq = p.first_seq;

COMMENT ON VIEW restart_reports IS 'one row per attempt that a restoring run abandons with reason restart';
COMMENT ON COLUMN restart_reports.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN restart_reports.run IS 'restoring run';
COMMENT ON COLUMN restart_reports.t IS 'moment of the first line that says so';
COMMENT ON COLUMN restart_reports.group_key IS 'group; NULL where the line does not tell it';
COMMENT ON COLUMN restart_reports.generation_index IS 'sibling within its group, from 0';
COMMENT ON COLUMN restart_reports.attempt IS 'attempt at the sibling, from 0';
COMMENT ON COLUMN restart_reports.span_id IS 'dispatch it is about: the latest in the restored history; NULL where there is none or the cut is unknown';
COMMENT ON COLUMN restart_reports.verdict IS 'counted; repeated (lost or over before); never_dispatched; unresolved (cut or attempt unknown); not_stopped (its run went on)';
COMMENT ON COLUMN restart_reports.times_reported IS 'lines of this run that say so';

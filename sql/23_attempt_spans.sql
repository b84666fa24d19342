-- attempt_spans: one row per dispatch. Key: experiment, span_id.
-- Fate is the first that applies of superseded, abandoned for a reason of its own, restart, discarded, kept, open.
-- Example: dispatched at 12, the snapshot cut at 40, its run's last line at 43, reported at the restore:
-- fate restart, thrown_away_s 28, never_saved_s 3.
CREATE OR REPLACE VIEW attempt_spans AS
SELECT r.experiment, r.run || ':' || s.seq AS span_id, r.run, s.group_key, s.prompt_id, s.generation_index, s.attempt,
       s.start_t, s.end_t, greatest(0, s.end_t - s.start_t) AS duration_s, s.end_kind,
       s.end_kind IS NULL AS end_is_bound,
       CASE WHEN s.end_kind NOT IN ('sealed', 'discarded') THEN s.end_kind
            WHEN f.fate IS NOT NULL THEN f.fate
            WHEN s.end_kind = 'discarded' OR s.discarded THEN 'discarded'
            WHEN s.end_kind = 'sealed' THEN 'kept'
            ELSE 'open' END AS fate,
       f.lost_by_run, f.lost_how, f.cut_t,
       CASE WHEN f.cut_t IS NOT NULL THEN greatest(0, least(f.cut_t, s.end_t) - s.start_t) END AS thrown_away_s,
       CASE WHEN f.cut_t IS NOT NULL THEN greatest(0, s.end_t - greatest(f.cut_t, s.start_t)) END AS never_saved_s,
       CASE WHEN f.cut_t IS NOT NULL THEN
           greatest(0, CASE WHEN s.end_kind IS NULL THEN greatest(s.end_t, f.restore_t) ELSE s.end_t END
                       - greatest(f.cut_t, s.start_t)) END AS never_saved_max_s,
       s.weight_version
FROM _spans s JOIN _runs r ON r.run_no = s.run_no LEFT JOIN _fates f ON f.run_no = s.run_no AND f.seq = s.seq;

COMMENT ON VIEW attempt_spans IS 'one row per dispatch: when it ran, how it ended, its one fate, what a restore threw away of it';
COMMENT ON COLUMN attempt_spans.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN attempt_spans.span_id IS 'name of the span within its experiment: run and seq of its dispatch';
COMMENT ON COLUMN attempt_spans.run IS 'run that dispatched it';
COMMENT ON COLUMN attempt_spans.group_key IS 'group: its group_id, or where no line tells one its prompt_id';
COMMENT ON COLUMN attempt_spans.prompt_id IS 'prompt, where the dispatch names it';
COMMENT ON COLUMN attempt_spans.generation_index IS 'sibling within its group, from 0';
COMMENT ON COLUMN attempt_spans.attempt IS 'attempt at the sibling, from 0';
COMMENT ON COLUMN attempt_spans.start_t IS 'moment of the dispatch';
COMMENT ON COLUMN attempt_spans.end_t IS 'moment of the line that ended it in its run; while open the greatest moment of its run from its dispatch on';
COMMENT ON COLUMN attempt_spans.duration_s IS 'attempt-seconds from start to end; 0 where the clock stepped back; a lower bound where end_is_bound';
COMMENT ON COLUMN attempt_spans.end_kind IS 'sealed, failed, cancelled or another reason, discarded, superseded; NULL while open';
COMMENT ON COLUMN attempt_spans.end_is_bound IS 'true where nothing in its run ended it';
COMMENT ON COLUMN attempt_spans.fate IS 'superseded, failed, cancelled or another reason, restart, discarded, kept, open';
COMMENT ON COLUMN attempt_spans.lost_by_run IS 'restoring run it was lost to; NULL unless fate is restart';
COMMENT ON COLUMN attempt_spans.lost_how IS 'reported, silent, redone, dropped, after_cut, discarded_branch; NULL unless fate is restart';
COMMENT ON COLUMN attempt_spans.cut_t IS 'cut of the restore it was lost to; NULL unless known';
COMMENT ON COLUMN attempt_spans.thrown_away_s IS 'attempt-seconds it ran before that cut';
COMMENT ON COLUMN attempt_spans.never_saved_s IS 'attempt-seconds it ran after that cut; a lower bound where end_is_bound';
COMMENT ON COLUMN attempt_spans.never_saved_max_s IS 'the same, if it ran until the restore where end_is_bound';
COMMENT ON COLUMN attempt_spans.weight_version IS 'weights at the dispatch, where the line says';

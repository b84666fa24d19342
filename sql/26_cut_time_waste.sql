-- cut_time_waste: one row per restore: what it threw away. Key: experiment, run.
-- Where the cut is unknown, unresolved = reported and every figure that needs the cut is NULL.
CREATE OR REPLACE VIEW cut_time_waste AS
WITH reports AS (
    SELECT experiment, run, count(*) AS reported,
           count(*) FILTER (verdict = 'counted') AS counted, count(*) FILTER (verdict = 'repeated') AS repeated,
           count(*) FILTER (verdict = 'never_dispatched') AS never_dispatched,
           count(*) FILTER (verdict = 'unresolved') AS unresolved,
           count(*) FILTER (verdict = 'not_stopped') AS not_stopped
    FROM restart_reports GROUP BY experiment, run
), literal AS (  -- the PR's rule as written: every report, each time
    SELECT r.experiment, r.run, fsum(r.cut_t - m.start_t) AS naive_s
    FROM _matched_reports m JOIN _restores r USING (run_no)
    GROUP BY r.experiment, r.run
), lost_spans AS (
    SELECT * FROM attempt_spans WHERE lost_by_run IS NOT NULL
), lost AS (
    SELECT experiment, lost_by_run AS run, count(*) AS attempts,
           count(*) FILTER (lost_how IN ('silent', 'redone', 'dropped')) AS unreported,
           count(*) FILTER (end_kind = 'sealed') AS sealed, count(*) FILTER (start_t > cut_t) AS after_cut,
           fsum(thrown_away_s) AS thrown_away_s, fsum(never_saved_s) AS never_saved_s,
           fsum(never_saved_max_s) AS never_saved_max_s
    FROM lost_spans GROUP BY ALL
), fleet AS (  -- rollouts in flight over the runs stopped: attempt-seconds of all of them per wall-second of all of them
    SELECT s.experiment, s.run,
           fsum(x.mean_in_flight * (x.last_t - x.first_t)) / nullif(fsum(x.last_t - x.first_t), 0) AS in_flight
    FROM (SELECT experiment, lost_by_run AS run, run AS stopped_run FROM lost_spans GROUP BY ALL) s
    JOIN runs x ON x.experiment = s.experiment AND x.run = s.stopped_run
    GROUP BY s.experiment, s.run
), known AS (
    SELECT r.*, r.parent_run IS NOT NULL AS is_known FROM restores r
)
SELECT r.experiment, r.run, r.parent_run, r.restore_t, r.snapshot_step, r.match, r.contradictions, r.cut_t, r.stop_t,
       coalesce(p.reported, 0) AS reported, coalesce(p.counted, 0) AS counted, coalesce(p.repeated, 0) AS repeated,
       coalesce(p.never_dispatched, 0) AS never_dispatched, coalesce(p.unresolved, 0) AS unresolved,
       coalesce(p.not_stopped, 0) AS not_stopped,
       CASE WHEN is_known THEN coalesce(l.unreported, 0) END AS unreported,
       CASE WHEN is_known THEN coalesce(l.attempts, 0) END AS lost_attempts,
       CASE WHEN is_known THEN coalesce(l.sealed, 0) END AS lost_sealed,
       CASE WHEN is_known THEN coalesce(l.after_cut, 0) END AS lost_after_cut,
       CASE WHEN is_known THEN coalesce(l.thrown_away_s, 0) END AS thrown_away_s,
       CASE WHEN is_known THEN coalesce(l.never_saved_s, 0) END AS never_saved_s,
       CASE WHEN is_known THEN coalesce(l.never_saved_max_s, 0) END AS never_saved_max_s,
       CASE WHEN is_known THEN coalesce(l.thrown_away_s + l.never_saved_s, 0) END AS lost_s,
       CASE WHEN is_known AND l.run IS NULL THEN 0 ELSE (l.thrown_away_s + l.never_saved_s) / nullif(g.in_flight, 0) END
           AS lost_fleet_s,
       CASE WHEN is_known THEN coalesce(n.naive_s, 0) END AS naive_s
FROM known r
LEFT JOIN reports p ON p.experiment = r.experiment AND p.run = r.run
LEFT JOIN lost l ON l.experiment = r.experiment AND l.run = r.run
LEFT JOIN fleet g ON g.experiment = r.experiment AND g.run = r.run
LEFT JOIN literal n ON n.experiment = r.experiment AND n.run = r.run;

COMMENT ON VIEW cut_time_waste IS 'one row per restore: what it threw away, each dispatch counted once';
COMMENT ON COLUMN cut_time_waste.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN cut_time_waste.run IS 'run that restored';
COMMENT ON COLUMN cut_time_waste.parent_run IS 'run whose snapshot was taken; NULL where none is known';
COMMENT ON COLUMN cut_time_waste.restore_t IS 'moment the restore started';
COMMENT ON COLUMN cut_time_waste.snapshot_step IS 'step of that snapshot';
COMMENT ON COLUMN cut_time_waste.match IS 'how it was found: path, anchor, step, latest (by its name), evidence; NULL: not found';
COMMENT ON COLUMN cut_time_waste.contradictions IS 'attempts and prompts that speak against it';
COMMENT ON COLUMN cut_time_waste.cut_t IS 'moment the snapshot holds';
COMMENT ON COLUMN cut_time_waste.stop_t IS 'last event of the parent';
COMMENT ON COLUMN cut_time_waste.reported IS 'attempts it abandons with reason restart: counted + repeated + never_dispatched + unresolved + not_stopped';
COMMENT ON COLUMN cut_time_waste.counted IS 'of them lost to this restore';
COMMENT ON COLUMN cut_time_waste.repeated IS 'of them lost or over before';
COMMENT ON COLUMN cut_time_waste.never_dispatched IS 'of them with no dispatch in the restored history';
COMMENT ON COLUMN cut_time_waste.unresolved IS 'of them whose attempt or cut is not known';
COMMENT ON COLUMN cut_time_waste.not_stopped IS 'of them whose run went on';
COMMENT ON COLUMN cut_time_waste.unreported IS 'attempts lost without a report, though in the snapshot: silent, redone or dropped';
COMMENT ON COLUMN cut_time_waste.lost_attempts IS 'all dispatches lost to this restore';
COMMENT ON COLUMN cut_time_waste.lost_sealed IS 'of them sealed by their own run';
COMMENT ON COLUMN cut_time_waste.lost_after_cut IS 'of them started after the cut';
COMMENT ON COLUMN cut_time_waste.thrown_away_s IS 'attempt-seconds the lost ones ran before the cut';
COMMENT ON COLUMN cut_time_waste.never_saved_s IS 'attempt-seconds the lost ones ran after the cut; a lower bound';
COMMENT ON COLUMN cut_time_waste.never_saved_max_s IS 'the same, if open ones ran until the restore';
COMMENT ON COLUMN cut_time_waste.lost_s IS 'thrown_away_s + never_saved_s, attempt-seconds';
COMMENT ON COLUMN cut_time_waste.lost_fleet_s IS 'wall-seconds the whole fleet worked for nothing: lost_s by the mean rollouts in flight of the runs it stopped';
COMMENT ON COLUMN cut_time_waste.naive_s IS 'cut minus latest dispatch over all reports, counted or not: the rule without deduplication, attempt-seconds';

-- lag: one row per restore with a known cut: work that a newer snapshot held, but the restored one did not.
-- Key: experiment, run. Only what had finished between the two cuts is told: what was still running at the newer cut is
-- lost with either. The parent's snapshots count, cut by the time it stopped:
-- - older_s: finished by the newest of them that was published when the restore started: an older one was restored;
-- - unpublished_s: finished after that one, but by the newest of them that was only published later: cut, not yet safe.
-- A snapshot whose publication the stop prevented leaves no line at all. due_cut_t says when one was due (the last cut
-- plus the run's usual gap), where that came before the stop, and due_s what it would have saved beyond the two: an
-- estimate, and part of rest_s. lost_s = older_s + unpublished_s + rest_s.
-- Example: cuts at 40 and 70, both published, the restore took the one at 40; an attempt from 20 to 60 is lost with 31 s of
-- others: ('x', 'b2', 'a1', 90, 40, 42, 70, 70, NULL, 71, 40, 0, 31, 0).
CREATE OR REPLACE VIEW lag AS
WITH restored AS (
    SELECT r.experiment, r.run, r.parent_run, r.restore_t, r.cut_t, r.published_t, p.last_t AS stop_t
    FROM _restores r JOIN _runs p ON p.experiment = r.experiment AND p.run = r.parent_run
), cuts AS (
    SELECT r.experiment, r.run, e.cut_time AS cut_t, e.t <= r.restore_t AS is_published
    FROM restored r
    JOIN events e ON e.experiment = r.experiment AND e.event = 'snapshot_published' AND e.run = r.parent_run
    WHERE e.cut_time <= r.stop_t
), newest AS (
    SELECT experiment, run, max(cut_t) FILTER (is_published) AS newest_published_cut_t, max(cut_t) AS newest_cut_t
    FROM cuts GROUP BY ALL
), gaps AS (
    SELECT experiment, run, median(gap) AS gap_s
    FROM (SELECT experiment, run, cut_t - lag(cut_t) OVER (PARTITION BY experiment, run ORDER BY cut_t) AS gap FROM cuts)
    GROUP BY ALL
), marks AS (
    SELECT r.*, greatest(r.cut_t, n.newest_published_cut_t) AS newest_published_cut_t,
           greatest(r.cut_t, n.newest_cut_t) AS newest_cut_t,
           CASE WHEN n.newest_cut_t + g.gap_s <= r.stop_t THEN n.newest_cut_t + g.gap_s END AS due_cut_t
    FROM restored r
    LEFT JOIN newest n ON n.experiment = r.experiment AND n.run = r.run
    LEFT JOIN gaps g ON g.experiment = r.experiment AND g.run = r.run
), lost AS (
    SELECT m.experiment, m.run, s.duration_s,
           CASE WHEN s.end_kind = 'sealed' AND s.run = m.parent_run AND s.end_t > m.cut_t THEN s.end_t END AS finished_t
    FROM marks m JOIN attempt_spans s ON s.experiment = m.experiment AND s.lost_by_run = m.run
), sums AS (
    SELECT l.experiment, l.run, fsum(l.duration_s) AS lost_s,
           coalesce(fsum(l.duration_s) FILTER (l.finished_t <= m.newest_published_cut_t), 0) AS older_s,
           coalesce(fsum(l.duration_s) FILTER (l.finished_t > m.newest_published_cut_t AND l.finished_t <= m.newest_cut_t), 0)
               AS unpublished_s,
           coalesce(fsum(l.duration_s) FILTER (l.finished_t > m.newest_cut_t AND l.finished_t <= m.due_cut_t), 0) AS due_s
    FROM lost l JOIN marks m ON m.experiment = l.experiment AND m.run = l.run
    GROUP BY ALL
)
SELECT m.experiment, m.run, m.parent_run, m.stop_t, m.cut_t, m.published_t, m.newest_published_cut_t, m.newest_cut_t,
       m.due_cut_t, coalesce(s.lost_s, 0) AS lost_s, coalesce(s.older_s, 0) AS older_s,
       coalesce(s.unpublished_s, 0) AS unpublished_s,
       coalesce(s.lost_s - s.older_s - s.unpublished_s, 0) AS rest_s, coalesce(s.due_s, 0) AS due_s
FROM marks m LEFT JOIN sums s ON s.experiment = m.experiment AND s.run = m.run;

COMMENT ON VIEW lag IS 'one row per restore with a known cut: what it lost though a newer snapshot held it';
COMMENT ON COLUMN lag.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN lag.run IS 'run that restored';
COMMENT ON COLUMN lag.parent_run IS 'run whose snapshot was taken';
COMMENT ON COLUMN lag.stop_t IS 'last event of the parent';
COMMENT ON COLUMN lag.cut_t IS 'cut of the snapshot restored';
COMMENT ON COLUMN lag.published_t IS 'moment that snapshot was published';
COMMENT ON COLUMN lag.newest_published_cut_t IS 'newest cut of the parent that was published when the restore started';
COMMENT ON COLUMN lag.newest_cut_t IS 'newest cut of the parent, published by then or not';
COMMENT ON COLUMN lag.due_cut_t IS 'moment by which one more cut was due before the stop, by the usual gap of the parent; NULL where none was, or the gap is not known';
COMMENT ON COLUMN lag.lost_s IS 'attempt-seconds lost to the restore, all';
COMMENT ON COLUMN lag.older_s IS 'of them finished by newest_published_cut_t: an older snapshot was restored';
COMMENT ON COLUMN lag.unpublished_s IS 'of them finished after that, by newest_cut_t: cut, but not yet published';
COMMENT ON COLUMN lag.rest_s IS 'of them the rest, which no snapshot held: lost_s - older_s - unpublished_s';
COMMENT ON COLUMN lag.due_s IS 'of the rest what had finished by due_cut_t: an estimate of what a snapshot cut but never published cost';

-- progress: one row per moment at which a run seals groups or restores. Key: experiment, run, t, event.
-- `sealed` goes up with every group_sealed line; `net` is what the run stands on: the seals of the history it restored and
-- its own so far. A restore row has the net the run begins with, and rolled_back, what its parent had more at its end.
-- A restore whose cut is not known has NULL for both, and so have the run's later rows. Forks each have their own net.
-- Example: a1 seals 5 groups, 3 of them by the cut that b2 restores, b2 seals 1: its rows are
-- ('x', 'b2', 60, 'restore', 0, 5, 3, 2), ('x', 'b2', 70, 'group_sealed', 1, 6, 4, 0).
CREATE OR REPLACE VIEW progress AS
WITH seals AS (
    SELECT experiment, run, t, count(*) AS seals FROM events WHERE event = 'group_sealed' GROUP BY ALL
), totals AS (
    SELECT experiment, run, sum(seals)::BIGINT AS seals FROM seals GROUP BY ALL
), histories AS (
    SELECT h.experiment, h.run, sum(s.seals)::BIGINT AS seals
    FROM _history h JOIN seals s ON s.experiment = h.experiment AND s.run = h.ancestor AND s.t <= h.upto
    GROUP BY ALL
), stood AS (  -- what a run starts from, and how many it seals itself
    SELECT x.experiment, x.run, r.restore_t, r.parent_run,
           CASE WHEN r.run IS NULL OR r.parent_run IS NOT NULL THEN coalesce(h.seals, 0) END AS base,
           coalesce(t.seals, 0) AS seals
    FROM _runs x
    LEFT JOIN _restores r ON r.experiment = x.experiment AND r.run = x.run
    LEFT JOIN histories h ON h.experiment = x.experiment AND h.run = x.run
    LEFT JOIN totals t ON t.experiment = x.experiment AND t.run = x.run
), moments AS (
    SELECT experiment, run, t, 'group_sealed' AS event, seals FROM seals
    UNION ALL
    SELECT experiment, run, restore_t, 'restore', 0 FROM stood WHERE restore_t IS NOT NULL
), counted AS (
    SELECT *, sum(seals) OVER (PARTITION BY experiment ORDER BY t RANGE UNBOUNDED PRECEDING)::BIGINT AS sealed,
           sum(seals) OVER (PARTITION BY experiment, run ORDER BY t RANGE UNBOUNDED PRECEDING)::BIGINT AS own
    FROM moments
)
SELECT c.experiment, c.run, c.t, c.event, c.seals, c.sealed,
       b.base + CASE c.event WHEN 'restore' THEN 0 ELSE c.own END AS net,
       CASE c.event WHEN 'restore' THEN p.base + p.seals - b.base ELSE 0 END AS rolled_back
FROM counted c
JOIN stood b ON b.experiment = c.experiment AND b.run = c.run
LEFT JOIN stood p ON p.experiment = b.experiment AND p.run = b.parent_run;

COMMENT ON VIEW progress IS 'one row per moment at which a run seals groups or restores: groups sealed, and net of what was rolled back';
COMMENT ON COLUMN progress.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN progress.run IS 'run that sealed or restored';
COMMENT ON COLUMN progress.t IS 'moment';
COMMENT ON COLUMN progress.event IS 'group_sealed or restore';
COMMENT ON COLUMN progress.seals IS 'groups sealed at that moment';
COMMENT ON COLUMN progress.sealed IS 'groups sealed by then in all runs of the experiment, rolled back or not';
COMMENT ON COLUMN progress.net IS 'groups the run stands on: of the history it restored and its own; NULL where its cut is not known';
COMMENT ON COLUMN progress.rolled_back IS 'of a restore: groups its parent had sealed that the snapshot did not hold; NULL where the cut is not known';

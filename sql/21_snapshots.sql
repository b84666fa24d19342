-- snapshots: one row per published snapshot. Key: experiment, run, published_t, cut_t (a step may come again).
CREATE OR REPLACE VIEW snapshots AS
WITH taken AS (
    SELECT experiment, parent_run AS run, snapshot_seq AS seq, count(*) AS restores
    FROM _restores WHERE parent_run IS NOT NULL GROUP BY ALL
)
SELECT e.experiment, e.run, e.step, e.cut_time AS cut_t, e.t AS published_t, e.t - e.cut_time AS publish_lag_s,
       coalesce(t.restores, 0) AS restores
FROM events e LEFT JOIN taken t ON t.experiment = e.experiment AND t.run = e.run AND t.seq = e.seq
WHERE e.event = 'snapshot_published';

COMMENT ON VIEW snapshots IS 'one row per published snapshot';
COMMENT ON COLUMN snapshots.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN snapshots.run IS 'run that published it';
COMMENT ON COLUMN snapshots.step IS 'trainer step it belongs to, or its number: as the line says';
COMMENT ON COLUMN snapshots.cut_t IS 'moment it holds; NULL where the line does not say';
COMMENT ON COLUMN snapshots.published_t IS 'moment it was safe on disk';
COMMENT ON COLUMN snapshots.publish_lag_s IS 'wall-seconds from cut to publication';
COMMENT ON COLUMN snapshots.restores IS 'restores that took it';

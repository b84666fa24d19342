-- restores: one row per restore. Key: experiment, run (a process restores once).
-- Of several restore_started lines of a run the last before its first dispatch counts, the others are failed tries.
CREATE OR REPLACE VIEW restores AS
WITH trained AS (
    SELECT experiment, run, arg_min(t, seq) AS t FROM events WHERE event = 'train_step_started' GROUP BY experiment, run
), finished AS (
    SELECT experiment, run, arg_min(t, seq) AS t FROM events WHERE event = 'train_step_finished' GROUP BY experiment, run
)
SELECT r.experiment, r.run, r.restore_t, r.path, r.parent_run, r.snapshot_step, r.match, r.contradictions, r.cut_t,
       r.published_t, p.last_t AS stop_t,
       CASE WHEN p.last_act_t > coalesce(r.first_dispatch_t, r.restore_t) THEN NULL
            ELSE greatest(0, r.first_dispatch_t - p.last_t) END AS down_s,
       r.first_dispatch_t, coalesce(s.t, f.t) AS first_train_step_t
FROM _restores r
LEFT JOIN _runs p ON p.experiment = r.experiment AND p.run = r.parent_run
LEFT JOIN trained s ON s.experiment = r.experiment AND s.run = r.run
LEFT JOIN finished f ON f.experiment = r.experiment AND f.run = r.run;

COMMENT ON VIEW restores IS 'one row per restore';
COMMENT ON COLUMN restores.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN restores.run IS 'run that restored';
COMMENT ON COLUMN restores.restore_t IS 'moment the restore started';
COMMENT ON COLUMN restores.path IS 'what the line says was restored';
COMMENT ON COLUMN restores.parent_run IS 'run whose snapshot was taken; NULL where none is known';
COMMENT ON COLUMN restores.snapshot_step IS 'step of that snapshot';
COMMENT ON COLUMN restores.match IS 'how it was found: path, anchor, step, latest (by its name), evidence (against or without a name); NULL: not found';
COMMENT ON COLUMN restores.contradictions IS 'attempts and prompts that speak against it';
COMMENT ON COLUMN restores.cut_t IS 'moment the snapshot holds';
COMMENT ON COLUMN restores.published_t IS 'moment the snapshot was published';
COMMENT ON COLUMN restores.stop_t IS 'last event of the parent';
COMMENT ON COLUMN restores.down_s IS 'wall-seconds from stop_t to the first dispatch after the restore; NULL where the parent went on, or nothing was dispatched yet';
COMMENT ON COLUMN restores.first_dispatch_t IS 'first dispatch of the restoring run';
COMMENT ON COLUMN restores.first_train_step_t IS 'first trainer step of the restoring run: its start, where only ends are written its end';

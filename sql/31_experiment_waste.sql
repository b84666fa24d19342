-- experiment_waste: one row per experiment: what its restores threw away, by the measures experiments are compared by.
-- Key: experiment. Restores whose cut is unknown have no figure: they are counted in `restores`, not in `known_restores`,
-- and what they lost is in no sum.
-- Example: one restore that lost 31 attempt-seconds of 88, in 63 wall-seconds of runs and 4 dispatches:
-- ('x', 1, 1, 4, 88, 63, 28, 3, 31, 31, 1771.4, 7750, 0.352).
CREATE OR REPLACE VIEW experiment_waste AS
WITH rollouts AS (
    SELECT experiment, sum(spans)::BIGINT AS rollouts, fsum(seconds) AS rollout_s FROM rollout_seconds GROUP BY experiment
), pieces AS (  -- of each run the part that no run begun before it covers
    SELECT experiment,
           greatest(0, last_t - greatest(first_t, coalesce(max(last_t) OVER earlier, first_t))) AS wall_s
    FROM runs
    WINDOW earlier AS (PARTITION BY experiment ORDER BY first_t, last_t, run
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
), walls AS (
    SELECT experiment, fsum(wall_s) AS wall_s FROM pieces GROUP BY experiment
), lost AS (
    SELECT experiment, count(*) AS restores, count(lost_s) AS known_restores, fsum(thrown_away_s) AS thrown_away_s,
           fsum(never_saved_s) AS never_saved_s, fsum(lost_s) AS lost_s
    FROM cut_time_waste GROUP BY experiment
), figures AS (  -- no restore: nothing lost; only restores of unknown cut: not known
    SELECT w.experiment, coalesce(l.restores, 0) AS restores, coalesce(l.known_restores, 0) AS known_restores,
           coalesce(r.rollouts, 0) AS rollouts, coalesce(r.rollout_s, 0) AS rollout_s, w.wall_s,
           CASE WHEN l.experiment IS NULL THEN 0 ELSE l.thrown_away_s END AS thrown_away_s,
           CASE WHEN l.experiment IS NULL THEN 0 ELSE l.never_saved_s END AS never_saved_s,
           CASE WHEN l.experiment IS NULL THEN 0 ELSE l.lost_s END AS lost_s
    FROM walls w
    LEFT JOIN rollouts r ON r.experiment = w.experiment
    LEFT JOIN lost l ON l.experiment = w.experiment
)
SELECT *, lost_s / nullif(known_restores, 0) AS lost_s_per_restore, lost_s * 3600 / nullif(wall_s, 0) AS lost_s_per_hour,
       lost_s * 1000 / nullif(rollouts, 0) AS lost_s_per_1000_rollouts, lost_s / nullif(rollout_s, 0) AS lost_share
FROM figures;

COMMENT ON VIEW experiment_waste IS 'one row per experiment: what its restores threw away, by the measures experiments are compared by';
COMMENT ON COLUMN experiment_waste.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN experiment_waste.restores IS 'restores, all';
COMMENT ON COLUMN experiment_waste.known_restores IS 'of them those whose cut is known: the ones behind the figures';
COMMENT ON COLUMN experiment_waste.rollouts IS 'dispatches';
COMMENT ON COLUMN experiment_waste.rollout_s IS 'attempt-seconds of all dispatches';
COMMENT ON COLUMN experiment_waste.wall_s IS 'wall-seconds in which a run of it was there: the union of its runs, first to last line';
COMMENT ON COLUMN experiment_waste.thrown_away_s IS 'attempt-seconds the lost ones ran before the cut';
COMMENT ON COLUMN experiment_waste.never_saved_s IS 'attempt-seconds the lost ones ran after the cut; a lower bound';
COMMENT ON COLUMN experiment_waste.lost_s IS 'thrown_away_s + never_saved_s; 0 without a restore, NULL where no cut is known';
COMMENT ON COLUMN experiment_waste.lost_s_per_restore IS 'attempt-seconds lost per restore of known cut; NULL without one';
COMMENT ON COLUMN experiment_waste.lost_s_per_hour IS 'attempt-seconds lost per hour of wall_s';
COMMENT ON COLUMN experiment_waste.lost_s_per_1000_rollouts IS 'attempt-seconds lost per 1,000 dispatches';
COMMENT ON COLUMN experiment_waste.lost_share IS 'lost_s as a part of rollout_s, 0 to 1';

-- in_flight: one row per run and moment at which its number of running rollouts changes. Key: experiment, run, t.
-- The number holds from t to the next row of the run; after a run's last row nothing runs. What nothing ended runs to
-- the bound of its run, as in attempt_spans: in_flight times its wall-seconds, added up, are the attempt-seconds of all spans.
-- Example: a run dispatches at 10 and 11 and seals at 25: ('x', 'a1', 10, 1, 0, 1), ('x', 'a1', 11, 1, 0, 2),
-- ('x', 'a1', 25, 0, 1, 1).
CREATE OR REPLACE VIEW in_flight AS
WITH changes AS (
    SELECT experiment, run, start_t AS t, 1 AS started, 0 AS ended FROM _named_spans
    UNION ALL
    SELECT experiment, run, greatest(start_t, end_t), 0, 1 FROM _named_spans
), moments AS (
    SELECT experiment, run, t, sum(started)::BIGINT AS started, sum(ended)::BIGINT AS ended
    FROM changes GROUP BY experiment, run, t
)
SELECT experiment, run, t, started, ended,
       sum(started - ended) OVER (PARTITION BY experiment, run ORDER BY t ROWS UNBOUNDED PRECEDING)::BIGINT AS in_flight
FROM moments;

COMMENT ON VIEW in_flight IS 'one row per run and moment at which its number of running rollouts changes';
COMMENT ON COLUMN in_flight.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN in_flight.run IS 'run that dispatched them';
COMMENT ON COLUMN in_flight.t IS 'moment of the change';
COMMENT ON COLUMN in_flight.started IS 'attempts dispatched at that moment';
COMMENT ON COLUMN in_flight.ended IS 'attempts that ended at that moment, or were last known to run';
COMMENT ON COLUMN in_flight.in_flight IS 'attempts of the run that run from then on, until its next row';

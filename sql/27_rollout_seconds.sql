-- rollout_seconds: one row per experiment and fate; the seconds of all fates are those of all spans.
-- fsum, here and in all views: sum() of doubles depends on the order of the rows, so on the number of threads.
CREATE OR REPLACE VIEW rollout_seconds AS
SELECT experiment, fate, count(*) AS spans, fsum(duration_s) AS seconds,
       fsum(duration_s) / nullif(fsum(fsum(duration_s)) OVER (PARTITION BY experiment), 0) AS share
FROM attempt_spans
GROUP BY experiment, fate;

COMMENT ON VIEW rollout_seconds IS 'one row per experiment and fate: where the rollout time went';
COMMENT ON COLUMN rollout_seconds.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN rollout_seconds.fate IS 'as in attempt_spans';
COMMENT ON COLUMN rollout_seconds.spans IS 'dispatches of that fate';
COMMENT ON COLUMN rollout_seconds.seconds IS 'attempt-seconds they ran';
COMMENT ON COLUMN rollout_seconds.share IS 'part of all attempt-seconds of the experiment, 0 to 1; NULL where there are none';

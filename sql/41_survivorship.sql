-- survivorship: one row per experiment and decile of how long dispatches ran. Key: experiment, decile.
-- Are long rollouts lost to restores more often than short ones? Every dispatch is in one decile, whatever its fate: the
-- spans and seconds of all deciles are those of attempt_spans.
-- A dispatch that a stop cut short is counted at the length it had reached, so the longest hide in lower deciles: where
-- lost_share grows with the decile, the truth grows more.
-- Ties: equal lengths are in the same decile, so deciles may differ in size and some be missing.
-- Example: ten dispatches of 1 to 10 s, the longest lost: ('x', 1, 1, 1, 1, 0, 0, 1, 0, 0), ..., ('x', 10, 10, 10, 1, 1, 1, 10, 10, 1).
CREATE OR REPLACE VIEW survivorship AS
WITH spans AS (
    SELECT experiment, duration_s, fate FROM attempt_spans
), bounds AS (
    SELECT experiment, quantile_disc(duration_s, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]) AS q
    FROM spans GROUP BY experiment
), placed AS (
    SELECT s.experiment, s.duration_s, s.fate = 'restart' AS is_lost,
           1 + (s.duration_s > b.q[1])::INTEGER + (s.duration_s > b.q[2])::INTEGER + (s.duration_s > b.q[3])::INTEGER
             + (s.duration_s > b.q[4])::INTEGER + (s.duration_s > b.q[5])::INTEGER + (s.duration_s > b.q[6])::INTEGER
             + (s.duration_s > b.q[7])::INTEGER + (s.duration_s > b.q[8])::INTEGER + (s.duration_s > b.q[9])::INTEGER AS decile
    FROM spans s JOIN bounds b USING (experiment)
)
SELECT experiment, decile, min(duration_s) AS least_s, max(duration_s) AS most_s, count(*) AS spans,
       count(*) FILTER (is_lost) AS lost, count(*) FILTER (is_lost) / count(*) AS lost_share, fsum(duration_s) AS seconds,
       coalesce(fsum(duration_s) FILTER (is_lost), 0) AS lost_s,
       coalesce(fsum(duration_s) FILTER (is_lost), 0) / nullif(fsum(duration_s), 0) AS lost_s_share
FROM placed GROUP BY experiment, decile;

COMMENT ON VIEW survivorship IS 'one row per experiment and decile of how long dispatches ran: are long ones lost more?';
COMMENT ON COLUMN survivorship.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN survivorship.decile IS '1: the shortest tenth of all dispatches, 10: the longest';
COMMENT ON COLUMN survivorship.least_s IS 'length of its shortest dispatch, attempt-seconds';
COMMENT ON COLUMN survivorship.most_s IS 'length of its longest';
COMMENT ON COLUMN survivorship.spans IS 'dispatches in it, whatever their fate';
COMMENT ON COLUMN survivorship.lost IS 'of them those lost to restores, at the length they had reached';
COMMENT ON COLUMN survivorship.lost_share IS 'lost by spans, 0 to 1';
COMMENT ON COLUMN survivorship.seconds IS 'attempt-seconds of its dispatches';
COMMENT ON COLUMN survivorship.lost_s IS 'attempt-seconds of those lost';
COMMENT ON COLUMN survivorship.lost_s_share IS 'lost_s by seconds, 0 to 1; NULL where nothing ran';

-- repeat_losers: one row per prompt that lost anything to a restore. Key: experiment, prompt_id.
-- How often was the same prompt hit, and what did it cost? `WHERE stops > 1` are the repeat losers; over all rows lost_s
-- adds up to what restores cost in all. Where dispatches name no prompt, prompt_id is the group.
-- Example: prompt 7 lost an attempt of 31 s to restore b2 and one of 5 s to c3: ('x', '7', 2, 2, 36, 28, 3, 12, 'b2', 'c3').
CREATE OR REPLACE VIEW repeat_losers AS
WITH spans AS (
    SELECT s.*, coalesce(s.prompt_id, s.group_key) AS prompt, r.restore_t
    FROM attempt_spans s
    LEFT JOIN _restores r ON r.experiment = s.experiment AND r.run = s.lost_by_run
)
SELECT experiment, prompt AS prompt_id, count(DISTINCT lost_by_run) AS stops,
       count(*) FILTER (fate = 'restart') AS lost_attempts,
       fsum(duration_s) FILTER (fate = 'restart') AS lost_s,
       fsum(thrown_away_s) AS thrown_away_s, fsum(never_saved_s) AS never_saved_s,
       coalesce(fsum(duration_s) FILTER (fate = 'kept'), 0) AS kept_s,
       arg_min(lost_by_run, (restore_t, lost_by_run)) AS first_lost_by_run,
       arg_max(lost_by_run, (restore_t, lost_by_run)) AS last_lost_by_run
FROM spans
GROUP BY experiment, prompt
HAVING count(*) FILTER (fate = 'restart') > 0;

COMMENT ON VIEW repeat_losers IS 'one row per prompt that lost anything to a restore: how often, and at what cost';
COMMENT ON COLUMN repeat_losers.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN repeat_losers.prompt_id IS 'prompt; the group where dispatches name no prompt';
COMMENT ON COLUMN repeat_losers.stops IS 'restores that it lost something to';
COMMENT ON COLUMN repeat_losers.lost_attempts IS 'dispatches of it lost to them';
COMMENT ON COLUMN repeat_losers.lost_s IS 'attempt-seconds those ran';
COMMENT ON COLUMN repeat_losers.thrown_away_s IS 'of them before the cut; NULL where no cut is known';
COMMENT ON COLUMN repeat_losers.never_saved_s IS 'of them after the cut; NULL where no cut is known';
COMMENT ON COLUMN repeat_losers.kept_s IS 'attempt-seconds of its dispatches that were kept';
COMMENT ON COLUMN repeat_losers.first_lost_by_run IS 'first of those restores';
COMMENT ON COLUMN repeat_losers.last_lost_by_run IS 'last of them';

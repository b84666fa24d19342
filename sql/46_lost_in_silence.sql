-- lost_in_silence: one row per restore and group in its snapshot that was never dispatched again. Key: experiment, run,
-- group_key. In the snapshot: an attempt was running at the cut, or sealed and the group not closed. Never again: neither the
-- restoring run nor a run that has it in its history dispatches, seals, finalizes or discards anything of it. A group that
-- an earlier restore of the history had already left so is not told again. Restores that have not dispatched, published or
-- finished yet are left out: they may still come to it.
-- reported = 0: nobody ever says what became of it. A group all of whose attempts the restore reported is one it gave up openly, or has not
-- come to yet.
-- Example: b2 says nothing of group 9, of which sibling 0 was sealed (20 s) and 1 was running:
-- ('x', 'b2', 60, '9', '9', 1, 1, 0, 2, 45).
CREATE OR REPLACE VIEW lost_in_silence AS
WITH lines AS (
    SELECT r.experiment, r.run, l.event, g.group_key, l.generation_index, l.attempt
    FROM (SELECT run_no, event, group_no, generation_index, attempt FROM _held_lines
          UNION ALL SELECT run_no, event, group_no, NULL, NULL FROM _held_group_lines) l
    JOIN _runs r USING (run_no) JOIN _held_groups g USING (group_no)
), held AS (
    SELECT r.experiment, r.run, s.group_key, any_value(s.prompt_id) AS prompt_id,
           count(*) FILTER (h.running) AS running, count(*) FILTER (h.sealed) AS sealed
    FROM _held h
    JOIN _spans s ON s.run_no = h.span_no AND s.seq = h.span_seq
    JOIN _restores r ON r.run_no = h.run_no AND r.acted
    GROUP BY ALL
), heirs AS (
    SELECT experiment, run, run AS heir FROM _restores
    UNION ALL
    SELECT experiment, ancestor, run FROM _history
), taken_up AS (
    SELECT DISTINCT h.experiment, h.run, l.group_key
    FROM heirs h JOIN lines l ON l.experiment = h.experiment AND l.run = h.heir
    WHERE l.event IN ('attempt_dispatched', 'attempt_sealed', 'group_sealed', 'group_finalized', 'group_discarded')
), forgotten AS (
    SELECT h.* FROM held h
    ANTI JOIN taken_up t ON t.experiment = h.experiment AND t.run = h.run AND t.group_key = h.group_key
), first_forgotten AS (
    SELECT f.* FROM forgotten f
    WHERE NOT EXISTS (SELECT 1 FROM _history h JOIN forgotten e ON e.experiment = h.experiment AND e.run = h.ancestor
                      WHERE h.experiment = f.experiment AND h.run = f.run AND e.group_key = f.group_key)
), reports AS (
    SELECT h.experiment, h.run, l.group_key, count(DISTINCT (l.generation_index, l.attempt)) AS reported
    FROM heirs h JOIN lines l ON l.experiment = h.experiment AND l.run = h.heir
    WHERE l.event = 'attempt_abandoned'
    GROUP BY ALL
), lost AS (
    SELECT experiment, lost_by_run AS run, group_key, count(*) AS lost_attempts, fsum(duration_s) AS lost_s
    FROM attempt_spans WHERE lost_by_run IS NOT NULL GROUP BY ALL
)
SELECT h.experiment, h.run, r.restore_t, h.group_key, h.prompt_id, h.running, h.sealed,
       coalesce(p.reported, 0) AS reported, coalesce(l.lost_attempts, 0) AS lost_attempts, coalesce(l.lost_s, 0) AS lost_s
FROM first_forgotten h
JOIN _restores r ON r.experiment = h.experiment AND r.run = h.run
LEFT JOIN reports p ON p.experiment = h.experiment AND p.run = h.run AND p.group_key = h.group_key
LEFT JOIN lost l ON l.experiment = h.experiment AND l.run = h.run AND l.group_key = h.group_key;

COMMENT ON VIEW lost_in_silence IS 'one row per restore and group in its snapshot that was never dispatched again';
COMMENT ON COLUMN lost_in_silence.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN lost_in_silence.run IS 'run that restored';
COMMENT ON COLUMN lost_in_silence.restore_t IS 'moment the restore started';
COMMENT ON COLUMN lost_in_silence.group_key IS 'group';
COMMENT ON COLUMN lost_in_silence.prompt_id IS 'prompt, where a dispatch names it';
COMMENT ON COLUMN lost_in_silence.running IS 'attempts of it that were running at the cut';
COMMENT ON COLUMN lost_in_silence.sealed IS 'attempts of it that were sealed at the cut, the group not closed';
COMMENT ON COLUMN lost_in_silence.reported IS 'attempts of it that the restoring run, or a run after it, gave up in so many words; 0: in silence';
COMMENT ON COLUMN lost_in_silence.lost_attempts IS 'dispatches of it lost to this restore, those begun after the cut included';
COMMENT ON COLUMN lost_in_silence.lost_s IS 'attempt-seconds those ran';

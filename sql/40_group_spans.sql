-- group_spans: one row per group and time it was rolled out. Key: experiment, group_key, occurrence.
-- A prompt may come again in a later epoch. Where lines bear no group_id, a dispatch after the group's seal (one that its
-- run knows of: in the run itself or in the history it restored) begins the next occurrence; a seal that was rolled back
-- begins none. Where they do, a group occurs once.
-- Ties: of several seals and finished attempts the last counts (by moment, then run, then line): what was rolled back and
-- done again ends when it was done again.
-- Example: siblings 0 and 1 dispatched at 10, sealed at 15 and 27, the group at 27:
-- ('x', '7', 1, '7', 10, 27, 17, 2, 2, 2, 0, 22, 12, 1, 1).
CREATE OR REPLACE VIEW _group_visits AS  -- every span with the occurrence it belongs to
WITH named AS (
    SELECT DISTINCT experiment, group_id AS group_key FROM events WHERE group_id IS NOT NULL
), seals AS (
    SELECT l.experiment, l.run, l.seq, l.t, l.group_key
    FROM _lines l ANTI JOIN named n ON n.experiment = l.experiment AND n.group_key = l.group_key
    WHERE l.event = 'group_sealed' AND l.group_key IS NOT NULL
), before AS (  -- seals that a dispatch comes after
    SELECT s.experiment, s.run, s.seq, count(*) AS seals
    FROM _named_spans s JOIN seals e ON e.experiment = s.experiment AND e.group_key = s.group_key
    LEFT JOIN _history h ON h.experiment = s.experiment AND h.run = s.run AND h.ancestor = e.run
    WHERE e.run = s.run AND e.seq < s.seq OR e.t <= h.upto
    GROUP BY ALL
)
SELECT s.experiment, s.run, s.seq, s.group_key, 1 + coalesce(b.seals, 0) AS occurrence
FROM _named_spans s LEFT JOIN before b ON b.experiment = s.experiment AND b.run = s.run AND b.seq = s.seq;

CREATE OR REPLACE VIEW group_spans AS
WITH visits AS (
    SELECT v.experiment, v.group_key, v.occurrence, v.run, v.seq, s.prompt_id, s.generation_index, s.start_t, s.end_t,
           greatest(0, s.end_t - s.start_t) AS duration_s, s.end_kind, s.by_group, s.next_seq, f.fate
    FROM _group_visits v
    JOIN _named_spans s ON s.experiment = v.experiment AND s.run = v.run AND s.seq = v.seq
    LEFT JOIN _fates f ON f.experiment = v.experiment AND f.run = v.run AND f.seq = v.seq
), sums AS (
    SELECT experiment, group_key, occurrence, min(prompt_id) AS prompt_id, min(start_t) AS first_dispatch_t,
           count(DISTINCT coalesce(generation_index, -1)) AS siblings, count(*) AS attempts,
           count(*) FILTER (fate = 'restart' AND (end_kind IS NULL OR end_kind IN ('sealed', 'discarded'))) AS lost_attempts,
           fsum(duration_s) AS attempt_s
    FROM visits GROUP BY ALL
), finished AS (  -- of each sibling the attempt that was sealed last
    SELECT experiment, group_key, occurrence, generation_index, end_t, by_group
    FROM visits WHERE end_kind = 'sealed'
    QUALIFY row_number() OVER (PARTITION BY experiment, group_key, occurrence, generation_index
                               ORDER BY end_t DESC, run DESC, seq DESC) = 1
), slowest AS (
    SELECT experiment, group_key, occurrence, count(*) AS sealed_siblings, bool_or(by_group) AND count(*) > 1 AS at_once,
           max_by(generation_index, (end_t, generation_index)) AS straggler, max(end_t, 2) AS ends
    FROM finished GROUP BY ALL
), seals AS (  -- a seal belongs to the latest occurrence begun in its run or history by then
    SELECT l.experiment, l.group_key, l.run, l.seq, l.t, max(v.occurrence) AS occurrence
    FROM _lines l JOIN visits v ON v.experiment = l.experiment AND v.group_key = l.group_key
    LEFT JOIN _history h ON h.experiment = l.experiment AND h.run = l.run AND h.ancestor = v.run
    WHERE l.event = 'group_sealed' AND (v.run = l.run AND v.seq < l.seq OR v.start_t <= h.upto)
    GROUP BY ALL
), sealed AS (
    SELECT experiment, group_key, occurrence, max(t) AS sealed_t, count(*) AS seals FROM seals GROUP BY ALL
)
SELECT g.experiment, g.group_key, g.occurrence, g.prompt_id, g.first_dispatch_t, e.sealed_t,
       CASE WHEN e.sealed_t IS NOT NULL THEN greatest(0, e.sealed_t - g.first_dispatch_t) END AS duration_s, g.siblings, coalesce(s.sealed_siblings, 0) AS sealed_siblings,
       g.attempts, g.lost_attempts, g.attempt_s,
       CASE WHEN e.sealed_t IS NOT NULL AND NOT s.at_once THEN s.ends[1] - s.ends[2] END AS straggler_s,
       CASE WHEN e.sealed_t IS NOT NULL AND NOT s.at_once AND len(s.ends) > 1 THEN s.straggler END AS straggler,
       coalesce(e.seals, 0) AS seals
FROM sums g
LEFT JOIN slowest s ON s.experiment = g.experiment AND s.group_key = g.group_key AND s.occurrence = g.occurrence
LEFT JOIN sealed e ON e.experiment = g.experiment AND e.group_key = g.group_key AND e.occurrence = g.occurrence;

COMMENT ON VIEW group_spans IS 'one row per group and time it was rolled out: first dispatch to seal, and who kept it waiting';
COMMENT ON COLUMN group_spans.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN group_spans.group_key IS 'group: its group_id, or where no line tells one its prompt_id';
COMMENT ON COLUMN group_spans.occurrence IS '1, 2, ...: how often it had been sealed before, plus one; always 1 where lines bear a group_id';
COMMENT ON COLUMN group_spans.prompt_id IS 'prompt, where a dispatch names it';
COMMENT ON COLUMN group_spans.first_dispatch_t IS 'moment of its first dispatch';
COMMENT ON COLUMN group_spans.sealed_t IS 'moment of its last seal; NULL where none is told';
COMMENT ON COLUMN group_spans.duration_s IS 'wall-seconds between the two, down time of restores included';
COMMENT ON COLUMN group_spans.siblings IS 'siblings dispatched';
COMMENT ON COLUMN group_spans.sealed_siblings IS 'of them those with a sealed attempt';
COMMENT ON COLUMN group_spans.attempts IS 'dispatches';
COMMENT ON COLUMN group_spans.lost_attempts IS 'of them those lost to a restore';
COMMENT ON COLUMN group_spans.attempt_s IS 'attempt-seconds of all its dispatches';
COMMENT ON COLUMN group_spans.straggler_s IS 'wall-seconds that all others waited for the slowest sibling alone: its seal minus the seal before it; NULL with one sibling, unsealed, or where siblings are sealed all at one moment';
COMMENT ON COLUMN group_spans.straggler IS 'generation_index of that sibling; of equal ones the greatest; NULL where straggler_s is';
COMMENT ON COLUMN group_spans.seals IS 'group_sealed lines of it: more than 1 where a seal was rolled back and done again';

-- Internal: runs, and one span per dispatch with what its own run says of it (semantics, section 4).

CREATE TABLE IF NOT EXISTS _runs(
    experiment VARCHAR, run VARCHAR, first_t DOUBLE, last_t DOUBLE, last_t_seq BIGINT, events BIGINT,
    last_seq BIGINT, first_dispatch_seq BIGINT, first_dispatch_t DOUBLE, last_act_t DOUBLE, dispatches BIGINT, seals BIGINT,
    publications BIGINT);

-- One row per run. last_act_t: its last dispatch or publication, by which a fork is told from a stopped run.
CREATE OR REPLACE VIEW _runs_now AS
SELECT experiment, run, arg_min(t, seq) AS first_t, max(t) AS last_t, max_by(seq, (t, seq)) AS last_t_seq,
       count(*) AS events, max(seq) AS last_seq,
       min(seq) FILTER (event = 'attempt_dispatched') AS first_dispatch_seq,
       arg_min(t, seq) FILTER (event = 'attempt_dispatched') AS first_dispatch_t,
       max(t) FILTER (event IN ('attempt_dispatched', 'snapshot_published')) AS last_act_t,
       count(*) FILTER (event = 'attempt_dispatched') AS dispatches,
       count(*) FILTER (event = 'attempt_sealed') AS seals,
       count(*) FILTER (event = 'snapshot_published') AS publications
FROM events WHERE experiment IN (SELECT experiment FROM _touched)
GROUP BY experiment, run;

-- end_kind is NULL while open, end_t is then the bound. next_seq: the next dispatch of the sibling in the run. close_t: when a later line of the run first seals, finalizes
-- or discards the group. discarded: a discard of the group came after the seal, the sibling not dispatched between.
CREATE TABLE IF NOT EXISTS _spans(
    experiment VARCHAR, run VARCHAR, seq BIGINT, group_key VARCHAR, prompt_id VARCHAR, generation_index INTEGER,
    attempt INTEGER, weight_version BIGINT, start_t DOUBLE, end_seq BIGINT, end_t DOUBLE, end_kind VARCHAR,
    next_seq BIGINT, close_t DOUBLE, discarded BOOLEAN, by_group BOOLEAN);

CREATE OR REPLACE VIEW _spans_now AS
WITH own AS (  -- dispatches and what may end them by name
    SELECT experiment, run, group_key, generation_index, seq, t, attempt, prompt_id, weight_version,
           CASE event WHEN 'attempt_dispatched' THEN NULL WHEN 'attempt_sealed' THEN 'sealed' ELSE reason END AS ends_as
    FROM _touched_lines
    WHERE group_key IS NOT NULL
      AND (event IN ('attempt_dispatched', 'attempt_sealed') OR (event = 'attempt_abandoned' AND reason <> 'restart'))
), siblings AS (  -- most siblings are dispatched once in a run and end once: told without ordering their lines
    SELECT experiment, run, group_key, generation_index,
           count(*) FILTER (ends_as IS NULL) AS dispatches, count(ends_as) AS ends,
           min(seq) FILTER (ends_as IS NULL) AS seq, min(t) FILTER (ends_as IS NULL) AS start_t,
           min(attempt) FILTER (ends_as IS NULL) AS attempt, min(prompt_id) FILTER (ends_as IS NULL) AS prompt_id,
           min(weight_version) FILTER (ends_as IS NULL) AS weight_version,
           min(seq) FILTER (ends_as IS NOT NULL) AS end_seq, min(t) FILTER (ends_as IS NOT NULL) AS end_t,
           min(attempt) FILTER (ends_as IS NOT NULL) AS end_attempt, min(ends_as) AS end_kind
    FROM own GROUP BY experiment, run, group_key, generation_index
    HAVING count(*) FILTER (ends_as IS NULL) > 0
), judged AS (
    SELECT *, dispatches = 1 AND (ends = 0 OR ends = 1 AND end_seq > seq
              AND (end_attempt IS NULL OR end_attempt IS NOT DISTINCT FROM attempt)) AS is_plain
    FROM siblings
), tries AS (  -- the others in the order of their lines
    SELECT o.*, count(*) FILTER (o.ends_as IS NULL) OVER earlier AS try
    FROM own o SEMI JOIN (SELECT * FROM judged WHERE NOT is_plain) j
      ON o.experiment = j.experiment AND o.run = j.run AND o.group_key = j.group_key
     AND o.generation_index IS NOT DISTINCT FROM j.generation_index
    WINDOW earlier AS (PARTITION BY o.experiment, o.run, o.group_key, o.generation_index ORDER BY o.seq
                       ROWS UNBOUNDED PRECEDING)
), dispatched AS (
    SELECT *, lead(seq) OVER w AS next_seq, lead(t) OVER w AS next_t
    FROM tries WHERE ends_as IS NULL
    WINDOW w AS (PARTITION BY experiment, run, group_key, generation_index ORDER BY seq)
), ended AS (
    SELECT d.experiment, d.run, d.seq, min(e.seq) AS end_seq, arg_min(e.t, e.seq) AS end_t,
           arg_min(e.ends_as, e.seq) AS end_kind
    FROM dispatched d JOIN tries e
      ON e.experiment = d.experiment AND e.run = d.run AND e.group_key = d.group_key AND e.try = d.try
     AND e.generation_index IS NOT DISTINCT FROM d.generation_index
     AND (e.attempt IS NULL OR e.attempt IS NOT DISTINCT FROM d.attempt)
    WHERE e.ends_as IS NOT NULL
    GROUP BY ALL
), by_name AS (
    SELECT experiment, run, seq, group_key, prompt_id, generation_index, attempt, weight_version, start_t,
           end_seq, end_t, end_kind, NULL::BIGINT AS next_seq, NULL::DOUBLE AS next_t
    FROM judged WHERE is_plain
    UNION ALL
    SELECT d.experiment, d.run, d.seq, d.group_key, d.prompt_id, d.generation_index, d.attempt, d.weight_version, d.t,
           e.end_seq, e.end_t, e.end_kind, d.next_seq, d.next_t
    FROM dispatched d LEFT JOIN ended e USING (experiment, run, seq)
), closings AS (  -- a group has one to three such lines: lists that stay short
    SELECT experiment, run, group_key,
           list({'seq': seq, 't': t, 'event': event} ORDER BY seq) AS lines
    FROM _touched_lines
    WHERE event IN ('group_sealed', 'group_finalized', 'group_discarded') AND group_key IS NOT NULL
    GROUP BY experiment, run, group_key
), with_group AS (
    SELECT s.*, list_filter(c.lines, lambda l: l.seq > s.seq) AS later
    FROM by_name s LEFT JOIN closings c
      ON c.experiment = s.experiment AND c.run = s.run AND c.group_key = s.group_key
), with_ends AS (  -- the first of: by name, the group's seal or discard, another dispatch
    SELECT *, list_filter(later, lambda l: l.event <> 'group_finalized'
                                       AND (end_seq IS NULL OR l.seq < end_seq)
                                       AND (next_seq IS NULL OR l.seq < next_seq))[1] AS by_group,
           coalesce(next_seq < end_seq, next_seq IS NOT NULL) AS is_superseded
    FROM with_group
), first_end AS (
    SELECT * EXCLUDE (end_seq, end_t, end_kind),
           CASE WHEN by_group IS NOT NULL THEN by_group.seq WHEN is_superseded THEN next_seq ELSE end_seq END AS end_seq,
           CASE WHEN by_group IS NOT NULL THEN by_group.t WHEN is_superseded THEN next_t ELSE end_t END AS end_t,
           CASE WHEN by_group IS NOT NULL THEN CASE by_group.event WHEN 'group_sealed' THEN 'sealed' ELSE 'discarded' END
                WHEN is_superseded THEN 'superseded' ELSE end_kind END AS end_kind
    FROM with_ends
), bounds AS (  -- what nothing ends ran at least until the greatest t of its run on or after its own line
    SELECT f.experiment, f.run, f.seq, max(e.t) AS t
    FROM first_end f
    JOIN _runs r ON r.experiment = f.experiment AND r.run = f.run AND r.last_t_seq < f.seq
    JOIN events e ON e.experiment = f.experiment AND e.run = f.run AND e.seq >= f.seq
    WHERE f.end_kind IS NULL
    GROUP BY ALL
)
SELECT f.experiment, f.run, f.seq, f.group_key, f.prompt_id, f.generation_index, f.attempt, f.weight_version, f.start_t,
       f.end_seq, CASE WHEN f.end_kind IS NULL THEN coalesce(b.t, r.last_t) ELSE f.end_t END AS end_t, f.end_kind,
       f.next_seq, list_min(list_transform(f.later, lambda l: l.t)) AS close_t,
       f.end_kind = 'sealed' AND len(list_filter(f.later, lambda l: l.event = 'group_discarded' AND l.seq > f.end_seq
           AND (f.next_seq IS NULL OR l.seq < f.next_seq))) > 0 AS discarded,
       f.by_group IS NOT NULL AS by_group
FROM first_end f
JOIN _runs r ON r.experiment = f.experiment AND r.run = f.run
LEFT JOIN bounds b ON b.experiment = f.experiment AND b.run = f.run AND b.seq = f.seq;

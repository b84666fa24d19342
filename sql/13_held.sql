-- Internal: what a restored snapshot held (semantics, end of section 3): the spans of its history that were running
-- there, and the sealed ones whose group was not closed there. Only spans around a cut come here, never the bulk.

CREATE TABLE IF NOT EXISTS _held(
    experiment VARCHAR, run VARCHAR, span_run VARCHAR, span_seq BIGINT, running BOOLEAN, sealed BOOLEAN);

-- _held_lines: lines of the groups held by any cut, or discarded in a run that restored; one row per line.
CREATE TABLE IF NOT EXISTS _held_lines(
    experiment VARCHAR, run VARCHAR, seq BIGINT, t DOUBLE, event VARCHAR, group_key VARCHAR, generation_index INTEGER,
    attempt INTEGER, reason VARCHAR);

-- _around: spans at the end of each ancestor's part of a history, by what their own run says up to there.
CREATE OR REPLACE VIEW _around AS
WITH limits AS (
    SELECT DISTINCT experiment, ancestor, upto FROM _history WHERE experiment IN (SELECT experiment FROM _touched)
)
SELECT l.experiment, l.ancestor, l.upto, s.seq, s.group_key, s.generation_index, s.attempt, s.start_t, s.end_t,
       s.end_kind IS NULL OR s.end_t > l.upto AS running
FROM _spans s JOIN limits l ON l.experiment = s.experiment AND l.ancestor = s.run
WHERE s.start_t <= l.upto
  AND (s.end_kind IS NULL OR s.end_t > l.upto OR s.end_kind = 'sealed' AND (s.close_t IS NULL OR s.close_t > l.upto));

CREATE OR REPLACE VIEW _held_lines_now AS
WITH groups AS (
    SELECT experiment, group_key FROM _around
    UNION
    SELECT d.experiment, d.group_key FROM _touched_lines d JOIN _restores r USING (experiment, run)
    WHERE d.event = 'group_discarded'
)
SELECT l.experiment, l.run, l.seq, l.t, l.event, l.group_key, l.generation_index, l.attempt, l.reason
FROM _touched_lines l SEMI JOIN groups g ON g.experiment = l.experiment AND g.group_key = l.group_key;

-- _held_now: a descendant in the history may have given the attempt up, sealed it, dispatched its sibling anew or
-- closed its group; in the span's own run a restart abandonment is left to look for, and lines that a clock set back
-- puts before the cut.
CREATE OR REPLACE VIEW _held_now AS
WITH spans AS (
    SELECT h.experiment, h.run, h.depth, a.ancestor AS span_run, a.seq AS span_seq, a.group_key, a.generation_index,
           a.attempt, a.running
    FROM _history h
    JOIN _around a ON a.experiment = h.experiment AND a.ancestor = h.ancestor AND a.upto = h.upto
), later AS (
    SELECT s.experiment, s.run, s.span_run, s.span_seq, l.event, l.attempt IS NOT DISTINCT FROM s.attempt AS same_attempt,
           l.generation_index IS NOT DISTINCT FROM s.generation_index AS same_sibling, l.seq,
           min(l.seq) FILTER (l.event = 'attempt_dispatched' AND l.generation_index IS NOT DISTINCT FROM s.generation_index)
               OVER (PARTITION BY s.experiment, s.run, s.span_run, s.span_seq, h.ancestor) AS dispatched_seq
    FROM spans s
    JOIN _history h ON h.experiment = s.experiment AND h.run = s.run AND h.depth <= s.depth
    JOIN _held_lines l ON l.experiment = h.experiment AND l.run = h.ancestor AND l.group_key = s.group_key
    WHERE l.t <= h.upto
      AND (h.depth < s.depth OR l.seq > s.span_seq AND l.event IN ('attempt_abandoned', 'attempt_dispatched'))
), told AS (
    SELECT experiment, run, span_run, span_seq,
           bool_or(event IN ('group_sealed', 'group_finalized', 'group_discarded')) AS closed,
           bool_or(same_sibling AND (event = 'attempt_dispatched' OR event = 'attempt_abandoned' AND same_attempt)) AS stopped,
           bool_or(event = 'group_sealed') AS group_sealed,
           bool_or(same_sibling AND event = 'attempt_sealed' AND same_attempt
                   AND (dispatched_seq IS NULL OR seq < dispatched_seq)) AS sealed
    FROM later GROUP BY ALL
), states AS (
    SELECT s.experiment, s.run, s.span_run, s.span_seq,
           s.running AND NOT coalesce(t.group_sealed OR t.stopped OR t.sealed, false) AS running,
           (NOT s.running OR coalesce(t.sealed, false)) AND NOT coalesce(t.closed, false) AS sealed
    FROM spans s LEFT JOIN told t USING (experiment, run, span_run, span_seq)
)
SELECT * FROM states WHERE running OR sealed;

-- Internal: what restores make of spans (semantics, section 4): who lost them, who gave them up, who sealed them.

-- _deeds: what a restoring run does with each span its snapshot held, before it dispatches the sibling again.
-- again_seq: that dispatch, NULL where there is none. reason: its first word on giving the attempt up,
-- NULL where that is restart.
CREATE TABLE IF NOT EXISTS _deeds(
    experiment VARCHAR, run VARCHAR, span_run VARCHAR, span_seq BIGINT, running BOOLEAN, sealed BOOLEAN,
    again_seq BIGINT, mentions_group BOOLEAN, group_sealed_seq BIGINT, abandons BOOLEAN, reason VARCHAR,
    reports BOOLEAN, seal_seq BIGINT);

CREATE OR REPLACE VIEW _deeds_now AS
WITH lines AS (
    SELECT h.experiment, h.run, h.span_run, h.span_seq, h.running, h.sealed, l.seq, l.event, l.reason,
           l.attempt IS NOT DISTINCT FROM s.attempt AS same_attempt,
           l.generation_index IS NOT DISTINCT FROM s.generation_index AS same_sibling
    FROM _held h
    JOIN _spans s ON s.experiment = h.experiment AND s.run = h.span_run AND s.seq = h.span_seq
    LEFT JOIN _held_lines l ON l.experiment = h.experiment AND l.run = h.run AND l.group_key = s.group_key
    WHERE h.experiment IN (SELECT experiment FROM _touched)
), dispatched AS (
    SELECT *, min(seq) FILTER (event = 'attempt_dispatched' AND same_sibling)
                  OVER (PARTITION BY experiment, run, span_run, span_seq) AS again_seq
    FROM lines
), marked AS (
    SELECT *, again_seq IS NULL OR seq < again_seq AS before,
           event = 'attempt_abandoned' AND same_sibling AND same_attempt AS is_abandonment
    FROM dispatched
)
SELECT experiment, run, span_run, span_seq, running, sealed, any_value(again_seq) AS again_seq,
       count(event) > 0 AS mentions_group,
       min(seq) FILTER (event = 'group_sealed') AS group_sealed_seq,
       coalesce(bool_or(is_abandonment AND before), false) AS abandons,
       nullif(arg_min(reason, seq) FILTER (is_abandonment AND before), 'restart') AS reason,
       coalesce(bool_or(is_abandonment AND reason = 'restart'), false) AS reports,
       min(seq) FILTER (before AND (event = 'group_sealed' OR event = 'attempt_sealed' AND same_sibling AND same_attempt))
           AS seal_seq
FROM marked
GROUP BY experiment, run, span_run, span_seq, running, sealed;

-- _matched_reports: one row per report of a restore with a known cut that has a dispatch in its history: the latest.
CREATE OR REPLACE VIEW _matched_reports AS
SELECT r.experiment, r.run, r.first_seq, r.span_run, r.span_seq, r.start_t
FROM _report_spans r
JOIN _history h ON h.experiment = r.experiment AND h.run = r.run AND h.ancestor = r.span_run AND r.start_t <= h.upto
QUALIFY row_number() OVER (PARTITION BY r.experiment, r.run, r.first_seq ORDER BY h.depth, r.span_seq DESC) = 1;

-- _lost: one row per restore and way a span is lost to it, before it is settled which of them has the span.
CREATE OR REPLACE VIEW _lost AS
WITH restores AS (SELECT * FROM _restores WHERE experiment IN (SELECT experiment FROM _touched)),
branches AS (  -- runs off the history, over before the restore, that descend from a run of it
    SELECT DISTINCT r.experiment, r.run, d.run AS branch
    FROM restores r
    JOIN _history h ON h.experiment = r.experiment AND h.run = r.run
    JOIN _history d ON d.experiment = h.experiment AND d.ancestor = h.ancestor AND d.run <> r.run
    JOIN _runs b ON b.experiment = d.experiment AND b.run = d.run AND b.last_t < r.restore_t
    ANTI JOIN _history own ON own.experiment = r.experiment AND own.run = r.run AND own.ancestor = d.run
), mentioned_below AS (  -- groups that a run with this one in its history mentions
    SELECT DISTINCT h.experiment, h.ancestor AS run, l.group_key
    FROM _history h JOIN _held_lines l ON l.experiment = h.experiment AND l.run = h.run
)
SELECT m.experiment, m.run, m.span_run, m.span_seq, 'reported' AS how, 1 AS letter
FROM _matched_reports m JOIN restores r USING (experiment, run)
UNION ALL
SELECT experiment, run, span_run, span_seq, 'silent', 2
FROM _deeds d JOIN restores r USING (experiment, run)
WHERE d.running AND r.acted AND NOT d.abandons AND d.seal_seq IS NULL
UNION ALL
SELECT experiment, run, span_run, span_seq, 'redone', 3
FROM _deeds d JOIN restores r USING (experiment, run)
WHERE d.sealed AND r.acted AND NOT d.reports AND d.again_seq IS NOT NULL
  AND (d.group_sealed_seq IS NULL OR d.again_seq < d.group_sealed_seq)
UNION ALL
SELECT d.experiment, d.run, d.span_run, d.span_seq, 'dropped', 4
FROM _deeds d JOIN restores r USING (experiment, run)
JOIN _spans s ON s.experiment = d.experiment AND s.run = d.span_run AND s.seq = d.span_seq
ANTI JOIN mentioned_below b ON b.experiment = d.experiment AND b.run = d.run AND b.group_key = s.group_key
WHERE d.sealed AND r.acted AND NOT d.mentions_group
UNION ALL
SELECT r.experiment, r.run, s.run, s.seq, 'after_cut', 5
FROM restores r JOIN _spans s ON s.experiment = r.experiment AND s.run = r.parent_run AND s.start_t > r.cut_t
UNION ALL
SELECT b.experiment, b.run, s.run, s.seq, 'discarded_branch', 6
FROM branches b JOIN _spans s ON s.experiment = b.experiment AND s.run = b.branch;

-- _discards: spans sealed in a run's history, or by it, whose group that run discards afterwards, the sibling not
-- dispatched between. The seal is the span's own end, or that of a run which restored it running.
CREATE OR REPLACE VIEW _discards AS
WITH discards AS (
    SELECT l.experiment, l.run, l.group_key, l.seq
    FROM _held_lines l JOIN _restores r ON r.experiment = l.experiment AND r.run = l.run
    WHERE l.event = 'group_discarded' AND l.experiment IN (SELECT experiment FROM _touched)
), seals AS (
    SELECT s.experiment, s.group_key, s.generation_index, s.run AS span_run, s.seq AS span_seq, s.run AS seal_run,
           s.end_seq AS seal_seq, s.end_t AS seal_t
    FROM _spans s SEMI JOIN discards d ON d.experiment = s.experiment AND d.group_key = s.group_key
    WHERE s.end_kind = 'sealed'
    UNION ALL
    SELECT s.experiment, s.group_key, s.generation_index, s.run, s.seq, x.run, x.seal_seq, l.t
    FROM _deeds x
    JOIN _spans s ON s.experiment = x.experiment AND s.run = x.span_run AND s.seq = x.span_seq
    JOIN _held_lines l ON l.experiment = x.experiment AND l.run = x.run AND l.seq = x.seal_seq
    WHERE x.running AND NOT x.abandons
), parts AS (  -- what of each run a discarding run stands on: its history, and its own lines to the discard
    SELECT d.experiment, d.run, d.seq, d.group_key, h.ancestor AS part, h.upto, 9223372036854775807 AS before_seq, h.depth
    FROM discards d JOIN _history h ON h.experiment = d.experiment AND h.run = d.run
    UNION ALL
    SELECT experiment, run, seq, group_key, run, 'infinity'::DOUBLE, seq, 0 FROM discards
)
SELECT DISTINCT s.experiment, p.run, s.span_run, s.span_seq
FROM seals s
JOIN parts p ON p.experiment = s.experiment AND p.group_key = s.group_key AND p.part = s.seal_run
WHERE s.seal_t <= p.upto AND s.seal_seq < p.before_seq AND (p.depth > 0 OR s.span_run <> p.run)
  AND NOT EXISTS (
      SELECT 1 FROM parts q
      JOIN _held_lines l ON l.experiment = q.experiment AND l.run = q.part AND l.group_key = q.group_key
      WHERE q.experiment = p.experiment AND q.run = p.run AND q.seq = p.seq
        AND l.event = 'attempt_dispatched' AND l.generation_index IS NOT DISTINCT FROM s.generation_index
        AND l.t <= q.upto AND l.seq < q.before_seq AND (q.depth < p.depth OR q.depth = p.depth AND l.seq > s.seal_seq));

-- _fates: one row per span whose fate restores decide: lost, given up, sealed or discarded by a run that restored it.
-- lost_by_run is NULL unless its fate is restart; cut_t is NULL where that restore's cut is unknown.
CREATE TABLE IF NOT EXISTS _fates(
    experiment VARCHAR, run VARCHAR, seq BIGINT, fate VARCHAR, lost_by_run VARCHAR, lost_how VARCHAR, cut_t DOUBLE,
    restore_t DOUBLE);

CREATE OR REPLACE VIEW _fates_now AS
WITH may_be_lost AS (  -- a run that goes on after the restoring run's first dispatch was not stopped
    SELECT l.*, r.restore_t, r.cut_t, s.end_kind, s.end_t
    FROM (SELECT * FROM _lost
          UNION ALL  -- reported by a restore whose cut is unknown: the latest dispatch before it
          SELECT experiment, run, span_run, span_seq, 'reported', 7
          FROM (SELECT p.*, r.restore_t FROM _report_spans p JOIN _restores r USING (experiment, run)
                WHERE r.parent_run IS NULL AND p.start_t <= r.restore_t AND p.experiment IN (SELECT experiment FROM _touched)
                QUALIFY row_number() OVER (PARTITION BY p.experiment, p.run, p.first_seq
                                           ORDER BY p.start_t DESC, p.span_run DESC, p.span_seq DESC) = 1)) l
    JOIN _restores r ON r.experiment = l.experiment AND r.run = l.run
    JOIN _runs x ON x.experiment = l.experiment AND x.run = l.span_run
    JOIN _spans s ON s.experiment = l.experiment AND s.run = l.span_run AND s.seq = l.span_seq
    WHERE NOT coalesce(x.last_act_t > coalesce(r.first_dispatch_t, r.restore_t), false)
      AND (s.end_kind IS NULL OR s.end_kind = 'sealed')
), brought_back AS (  -- its seal lies in the history of a later restore that does not descend from this one
    SELECT DISTINCT l.experiment, l.run, l.span_run, l.span_seq
    FROM may_be_lost l
    JOIN _history h ON h.experiment = l.experiment AND h.ancestor = l.span_run AND l.end_t <= h.upto AND h.run <> l.run
    JOIN _restores later ON later.experiment = h.experiment AND later.run = h.run AND later.restore_t > l.restore_t
    ANTI JOIN _history through ON through.experiment = h.experiment AND through.run = h.run AND through.ancestor = l.run
    WHERE l.end_kind = 'sealed'
), given_up AS (
    SELECT d.experiment, d.span_run, d.span_seq, r.restore_t, d.run, d.reason
    FROM _deeds d JOIN _restores r ON r.experiment = d.experiment AND r.run = d.run
    JOIN _spans s ON s.experiment = d.experiment AND s.run = d.span_run AND s.seq = d.span_seq
    WHERE d.running AND d.reason IS NOT NULL AND d.experiment IN (SELECT experiment FROM _touched)
      AND (s.end_kind IS NULL OR s.end_kind IN ('sealed', 'discarded'))
), claims AS (  -- every restore's claim on a span; the earliest has it, one with a known cut before one without
    SELECT l.experiment, l.span_run AS run, l.span_seq AS seq, 'restart' AS fate, l.run AS by_run, l.how, l.cut_t,
           l.restore_t, l.letter
    FROM may_be_lost l ANTI JOIN brought_back b USING (experiment, run, span_run, span_seq)
    UNION ALL
    SELECT experiment, span_run, span_seq, reason, run, NULL, NULL, restore_t, 0 FROM given_up
    UNION ALL
    SELECT d.experiment, d.span_run, d.span_seq, 'kept', d.run, NULL, NULL, r.restore_t, 9
    FROM _deeds d JOIN _restores r ON r.experiment = d.experiment AND r.run = d.run
    JOIN _spans s ON s.experiment = d.experiment AND s.run = d.span_run AND s.seq = d.span_seq AND s.end_kind IS NULL
    WHERE d.running AND d.seal_seq IS NOT NULL AND NOT d.abandons
      AND d.experiment IN (SELECT experiment FROM _touched)
    UNION ALL
    SELECT experiment, span_run, span_seq, 'discarded', run, NULL, NULL, NULL, 8 FROM _discards
)
SELECT experiment, run, seq, fate, CASE fate WHEN 'restart' THEN by_run END AS lost_by_run, how AS lost_how, cut_t, restore_t
FROM claims
QUALIFY row_number() OVER (PARTITION BY experiment, run, seq
                           ORDER BY greatest(letter, 6), restore_t, by_run, letter) = 1;

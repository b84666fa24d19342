-- What other snapshot cadences would have cost: steps run by rtrace_analytics.decisions.whatif on temporary tables.
-- Positions are wall-seconds on a time line (runs end to end, down time left out). A snapshot is cut at 0 and at every
-- multiple of the interval d, and published `lag` later (the one at 0, which saves nothing, at once). A stop at s with c
-- the last cut published by s costs, for every span [a, b) that overlaps (c, s), min(b, s) - a; except spans that had
-- ended on their own by s. `saved_s` is from where on a cut saves the work of a span: its end, or, where whole groups are
-- recovered, the moment its group was complete.

-- step: tables
CREATE OR REPLACE TEMP TABLE _whatif_runs(
    run VARCHAR, line INTEGER, place INTEGER, start_s DOUBLE, begin_t DOUBLE, length_s DOUBLE);
CREATE OR REPLACE TEMP TABLE _whatif_stops(line INTEGER, stop INTEGER, s DOUBLE, d DOUBLE, c DOUBLE);

-- step: spans
-- own: ended by something else than its seal or a stop (failed, cancelled, another reason, superseded, discarded), in its own run.
CREATE OR REPLACE TEMP TABLE _whatif_spans AS
WITH placed AS (
    SELECT r.line, s.end_kind,
           r.start_s + least(greatest(s.start_t - r.begin_t, 0), r.length_s) AS a,
           r.start_s + least(greatest(s.end_t - r.begin_t, 0), r.length_s) AS b
    FROM _named_spans s JOIN _whatif_runs r ON r.run = s.run
    WHERE s.experiment = $experiment
)
SELECT line, a, b, coalesce(end_kind <> 'sealed', false) AS own, b AS saved_s
FROM placed WHERE a < b;

-- step: spans_of_groups
-- The same, for whole groups: a sealed span is saved from the moment on at which its group is sealed, finalized or
-- discarded, in its run or in a later one of its line; never, where that does not come.
CREATE OR REPLACE TEMP TABLE _whatif_spans AS
WITH closings AS (
    SELECT r.line, r.place, l.group_key, min(r.start_s + least(greatest(l.t - r.begin_t, 0), r.length_s)) AS closed_s
    FROM _lines l JOIN _whatif_runs r ON r.run = l.run
    WHERE l.experiment = $experiment AND l.event IN ('group_sealed', 'group_finalized', 'group_discarded')
    GROUP BY ALL
), placed AS (
    SELECT s.seq, s.run, r.line, r.place, s.group_key, s.end_kind,
           r.start_s + least(greatest(s.start_t - r.begin_t, 0), r.length_s) AS a,
           r.start_s + least(greatest(s.end_t - r.begin_t, 0), r.length_s) AS b,
           CASE WHEN s.close_t IS NOT NULL THEN r.start_s + least(greatest(s.close_t - r.begin_t, 0), r.length_s) END AS closed_s
    FROM _named_spans s JOIN _whatif_runs r ON r.run = s.run
    WHERE s.experiment = $experiment
), closed_later AS (
    SELECT p.run, p.seq, min(c.closed_s) AS closed_s
    FROM placed p JOIN closings c ON c.line = p.line AND c.group_key = p.group_key AND c.place > p.place
    WHERE p.end_kind = 'sealed' AND p.closed_s IS NULL
    GROUP BY ALL
)
SELECT p.line, p.a, p.b, coalesce(p.end_kind <> 'sealed', false) AS own,
       CASE WHEN p.end_kind = 'sealed' THEN greatest(p.b, coalesce(p.closed_s, l.closed_s, 'infinity'::DOUBLE)) ELSE p.b END
           AS saved_s
FROM placed p LEFT JOIN closed_later l USING (run, seq)
WHERE p.a < p.b;

-- step: integrals
-- Lost and thrown away at a stop at s, integrated over all s of the lines, per interval, were spans saved from their end
-- on. In closed form per span: while it runs a stop at s costs s - a; then b - a, until the first cut at or after its end
-- is published (at lost_until). Of this c - a ran before the cut, from the first cut at or after a on (first_cut after a).
-- n: whole intervals from its publication to lost_until.
WITH edges AS (
    SELECT i.d, s.b, s.a, s.b - s.a AS dur, ceil(s.a / i.d) * i.d - s.a AS first_cut,
           CASE WHEN s.own THEN s.b ELSE least(l.length_s, ceil(s.b / i.d) * i.d + $lag::DOUBLE) END AS lost_until
    FROM _whatif_spans s
    JOIN (SELECT line, max(start_s + length_s) AS length_s FROM _whatif_runs GROUP BY line) l USING (line)
    CROSS JOIN (SELECT unnest($intervals::DOUBLE[]) AS d) i
), counted AS (
    SELECT d, dur, first_cut, dur * (dur / 2 + lost_until - b) AS lost,
           greatest(0::DOUBLE, lost_until - a - first_cut - $lag::DOUBLE) AS length, floor(length / d) * d AS whole
    FROM edges
)
SELECT d, sum(lost) AS lost,
       sum(whole * (first_cut + (whole - d) / 2) + (first_cut + whole) * (length - whole)) AS thrown_away
FROM counted GROUP BY d;

-- step: integrals_of_groups
-- What is lost and thrown away beyond that, where spans are saved only with their group.
SELECT i.d, sum((s.b - s.a) * (least(l.length_s, ceil(s.saved_s / i.d) * i.d + $lag::DOUBLE)
                               - least(l.length_s, ceil(s.b / i.d) * i.d + $lag::DOUBLE))) AS lost
FROM _whatif_spans s
JOIN (SELECT line, max(start_s + length_s) AS length_s FROM _whatif_runs GROUP BY line) l USING (line)
CROSS JOIN (SELECT unnest($intervals::DOUBLE[]) AS d) i
WHERE s.saved_s > s.b
GROUP BY i.d;

-- step: moments
-- What stops at given positions cost, span by span; c NULL: the last cut published by s, every d.
WITH stops AS (
    SELECT stop, s, d, coalesce(c, greatest(0::DOUBLE, floor((s - $lag::DOUBLE) / d) * d)) AS c
    FROM _whatif_stops WHERE line = $line::INTEGER
), lost AS (
    SELECT t.stop, t.d, least(p.b, t.s) - p.a AS lost, greatest(0::DOUBLE, least(p.b, t.s, t.c) - p.a) AS thrown_away
    FROM stops t JOIN _whatif_spans p ON p.a < t.s AND p.saved_s > t.c
    WHERE p.line = $line::INTEGER AND NOT (p.own AND p.b <= t.s)
)
SELECT t.stop, t.d, coalesce(sum(l.lost), 0) AS lost, coalesce(sum(l.thrown_away), 0) AS thrown_away
FROM stops t LEFT JOIN lost l ON l.stop = t.stop AND l.d IS NOT DISTINCT FROM t.d
GROUP BY ALL ORDER BY ALL;

-- step: recorded
-- The same for the stops and cuts of the trace, each span counted at its first.
WITH lost AS (
    SELECT t.stop, least(p.b, t.s) - p.a AS lost, greatest(0::DOUBLE, least(p.b, t.s, t.c) - p.a) AS thrown_away
    FROM (SELECT * FROM _whatif_stops WHERE line = $line::INTEGER) t
    JOIN (SELECT *, rowid AS span FROM _whatif_spans WHERE line = $line::INTEGER) p ON p.a < t.s AND p.saved_s > t.c
    WHERE NOT (p.own AND p.b <= t.s)
    QUALIFY row_number() OVER (PARTITION BY p.span ORDER BY t.stop) = 1
)
SELECT t.stop, coalesce(sum(l.lost), 0) AS lost, coalesce(sum(l.thrown_away), 0) AS thrown_away
FROM _whatif_stops t LEFT JOIN lost l USING (stop)
WHERE t.line = $line::INTEGER
GROUP BY ALL ORDER BY ALL;

-- step: ends
-- Kept spans in the order from which on a cut saves them, to look up what a cut has saved.
SELECT saved_s, b - a AS dur FROM _whatif_spans WHERE line = $line::INTEGER AND NOT own ORDER BY saved_s;

-- step: levels
-- Per moment of an even grid (every h, from h / 2): what spans begun by then would have cost had no cut ever saved any.
WITH changes AS (
    SELECT ceil(a / $h::DOUBLE - 0.5) AS k, 1 AS running, a AS started, 0::DOUBLE AS ended
    FROM _whatif_spans WHERE line = $line::INTEGER
    UNION ALL
    SELECT ceil(b / $h::DOUBLE - 0.5), -1, -a, CASE WHEN own THEN 0 ELSE b - a END
    FROM _whatif_spans WHERE line = $line::INTEGER
), moments AS (
    SELECT k, sum(running) AS running, sum(started) AS started, sum(ended) AS ended FROM changes GROUP BY k
)
SELECT k, sum(running) OVER w AS running, sum(started) OVER w AS started, sum(ended) OVER w AS ended
FROM moments WINDOW w AS (ORDER BY k ROWS UNBOUNDED PRECEDING) ORDER BY k;

-- step: drop
DROP TABLE IF EXISTS _whatif_runs;
DROP TABLE IF EXISTS _whatif_stops;
DROP TABLE IF EXISTS _whatif_spans;

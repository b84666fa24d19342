-- staleness: one row per sealed dispatch: how many weight versions passed while it ran. Key: experiment, span_id.
-- The version at the dispatch and at the seal are what those lines bear; where they bear none, that of the run's last
-- weights_synced line before them (the order of lines). NULL where neither tells.
-- Example: dispatched with version 3, two syncs to 5 before its seal: ('x', 'a1:7', 'a1', '7', 0, 12, 30, 3, 5, 2).
CREATE OR REPLACE VIEW staleness AS
WITH syncs AS (
    SELECT experiment, run, seq, weight_version FROM events
    WHERE event = 'weights_synced' AND weight_version IS NOT NULL
), borne AS (
    SELECT experiment, run, seq, weight_version FROM events
    WHERE event IN ('attempt_sealed', 'group_sealed') AND weight_version IS NOT NULL
), sealed AS (
    SELECT s.experiment, s.run, s.seq, s.end_seq, s.group_key, s.generation_index, s.start_t, s.end_t, s.weight_version,
           b.weight_version AS seal_version
    FROM _named_spans s LEFT JOIN borne b ON b.experiment = s.experiment AND b.run = s.run AND b.seq = s.end_seq
    WHERE s.end_kind = 'sealed'
), at_dispatch AS (
    SELECT s.*, y.weight_version AS synced_at_dispatch
    FROM sealed s ASOF LEFT JOIN syncs y ON y.experiment = s.experiment AND y.run = s.run AND y.seq < s.seq
), at_seal AS (
    SELECT s.*, y.weight_version AS synced_at_seal
    FROM at_dispatch s ASOF LEFT JOIN syncs y ON y.experiment = s.experiment AND y.run = s.run AND y.seq < s.end_seq
)
SELECT experiment, run || ':' || seq AS span_id, run, group_key, generation_index, start_t, end_t AS sealed_t,
       coalesce(weight_version, synced_at_dispatch) AS dispatch_version,
       coalesce(seal_version, synced_at_seal) AS seal_version,
       coalesce(seal_version, synced_at_seal) - coalesce(weight_version, synced_at_dispatch) AS versions
FROM at_seal;

COMMENT ON VIEW staleness IS 'one row per sealed dispatch: how many weight versions passed while it ran';
COMMENT ON COLUMN staleness.experiment IS 'label given at load to runs that may restore one another';
COMMENT ON COLUMN staleness.span_id IS 'dispatch, as in attempt_spans';
COMMENT ON COLUMN staleness.run IS 'run that dispatched and sealed it';
COMMENT ON COLUMN staleness.group_key IS 'group';
COMMENT ON COLUMN staleness.generation_index IS 'sibling within its group, from 0';
COMMENT ON COLUMN staleness.start_t IS 'moment of the dispatch';
COMMENT ON COLUMN staleness.sealed_t IS 'moment of the seal';
COMMENT ON COLUMN staleness.dispatch_version IS 'weights at the dispatch; NULL where the trace does not tell';
COMMENT ON COLUMN staleness.seal_version IS 'weights at the seal; NULL where the trace does not tell';
COMMENT ON COLUMN staleness.versions IS 'seal_version - dispatch_version; NULL where either is not known';

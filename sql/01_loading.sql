-- What only the loader needs to know again at the next load.

CREATE TABLE IF NOT EXISTS _blocks(file_id INTEGER, block BIGINT, bytes INTEGER, hash UBIGINT);
COMMENT ON TABLE _blocks IS 'one row per 64 KiB of the text taken up of a file: its hash, so that a copy or a change is seen';

CREATE TABLE IF NOT EXISTS _run_files(experiment VARCHAR, run VARCHAR, file_id INTEGER, first_t DOUBLE, rank BIGINT);
COMMENT ON TABLE _run_files IS 'one row per run and file it stands in: the order of the files within the run';

CREATE TABLE IF NOT EXISTS _renames(experiment VARCHAR, event VARCHAR, name VARCHAR);
COMMENT ON TABLE _renames IS 'event names of another producer and the names they are loaded under';

-- The known fields of a line: words as text whatever they are, numbers as they are written.
CREATE OR REPLACE MACRO _known_fields(line) AS json_transform(line,
    '{"t": "JSON", "run": "VARCHAR", "event": "VARCHAR", "group_id": "VARCHAR", "prompt_id": "VARCHAR",
      "generation_index": "JSON", "attempt": "JSON", "reason": "VARCHAR", "step": "JSON", "cut_time": "JSON",
      "path": "VARCHAR", "weight_version": "JSON", "tokens": "JSON", "reward": "JSON"}');

-- A JSON value as an id or a word: a text, or a whole number as it is written; anything else is NULL.
CREATE OR REPLACE MACRO _word(value) AS
    CASE WHEN value::VARCHAR LIKE '"%' THEN value->>'$'
         WHEN regexp_full_match(value::VARCHAR, '0|-?[1-9][0-9]*') THEN value::VARCHAR END;

-- A JSON value as the text of a whole number: 2, "2" and 2.0 are 2; anything else is NULL.
CREATE OR REPLACE MACRO _whole(value) AS
    CASE WHEN regexp_full_match(value::VARCHAR, '(0|-?[1-9][0-9]*)(\.0)?') THEN replace(value::VARCHAR, '.0', '')
         WHEN regexp_full_match(value::VARCHAR, '"(0|-?[1-9][0-9]*)"') THEN trim(value::VARCHAR, '"') END;

-- The queries of gathered.py, each below the line with its name.

-- pointed_at: Where a file of questions names no passage of a question, those that its annotations name are the
-- positives.
INSERT INTO named BY NAME
SELECT (SELECT count(*) FROM named) + row_number() OVER (ORDER BY a.n, g.passage_id) - 1 AS c, a.n,
    'positive' AS role, row_number() OVER (PARTITION BY a.n ORDER BY g.first, g.passage_id) - 1 AS "order",
    g.passage_id, '' AS title, [] AS gold, 0 AS gold_missing
FROM (
    SELECT of, question, passage_id, min(row) AS first FROM pointed GROUP BY of, question, passage_id
) g
JOIN asked a ON a.question = g.question AND a.file = g.of
ANTI JOIN (SELECT n FROM named) named USING (n)

-- titled: The passages of the corpus with one of these titles.
SELECT id, title, text FROM corpus WHERE lower(title) IN (SELECT lower(unnest($titles))) ORDER BY file_row_number

-- numbered: The ids of questions: their own, or set, split and number.
CREATE TABLE ids AS SELECT n, coalesce(id, "set" || '/' || split || ':' ||
    row_number() OVER (PARTITION BY "set", split ORDER BY n)) AS id FROM asked;
CREATE VIEW numbered AS SELECT asked.* REPLACE (ids.id AS id), "set" || '/' || split AS first
    FROM asked JOIN ids USING (n)

-- found: The annotations of a passage with an answer of the question (which may stand twice in the file), else all of
-- them. `size` is the length of the longest answer that begins there, null where none does.
CREATE TABLE found AS
SELECT c.c, g.*,
    substring(coalesce(c.text, p.text), g.start + 1, list_max(list_transform(g.answers, lambda x: length(x)))) AS there,
    list_max([length(x) FOR x IN g.answers IF x != '' AND starts_with(there, x)]) AS size, size IS NULL AS wrong,
    g.start AS named
FROM pointed g
JOIN asked a ON a.question = g.question AND a.file = g.of
JOIN named c ON c.n = a.n AND c.passage_id = g.passage_id AND c.role = 'positive'
JOIN passages p ON p.id = c.passage_id
QUALIFY list_has_any(a.answers, g.answers) OR NOT
    bool_or(list_has_any(a.answers, g.answers)) OVER (PARTITION BY c.c)

-- again: Wrong places, where the answer is found again.
UPDATE found SET start = again[1], size = again[2] FROM (
    SELECT f.c, f.row, find_again(coalesce(n.text, p.text), f.answers, f.start) AS again
    FROM found f JOIN named n USING (c) JOIN passages p ON p.id = n.passage_id WHERE wrong
) a WHERE found.c = a.c AND found.row = a.row

-- own: The passages that are the question itself, by id (but for numbers, which only count) or by text.
CREATE MACRO plain(x) AS lower(trim(regexp_replace(x, '\s+', ' ', 'g')));
CREATE TABLE own AS
SELECT a.n, p.id AS passage_id FROM asked a JOIN passages p USING (id) WHERE NOT regexp_full_match(id, '\d+')
UNION SELECT n, p.id FROM asked JOIN (
    FROM passages WHERE length(text) <= (SELECT 2 * max(length(question)) FROM asked)
) p ON plain(text) = plain(question);
DELETE FROM own USING named WHERE named.n = own.n AND named.passage_id = own.passage_id AND named.role = 'positive';
DELETE FROM named USING own WHERE named.n = own.n AND named.passage_id = own.passage_id;
INSERT INTO named BY NAME
SELECT (SELECT coalesce(max(c), -1) FROM named) + row_number() OVER (ORDER BY n, passage_id) AS c, n, 'own' AS role,
    0 AS "order", passage_id, '' AS title, [] AS gold, 0 AS gold_missing FROM own;
SELECT count(DISTINCT n) FROM own

-- met: The contexts with their gold evidence, and whether the corpus has another text.
CREATE TABLE met AS
SELECT c.* EXCLUDE (gold, title, text, sentences),
    c.text IS NOT NULL AND (p.title, p.text) != (c.title, c.text) AS other_text,
    list_filter(list_sort(list_distinct(list_concat(c.gold, f.spans))), lambda x: x.start < x."end") AS gold
FROM named c
JOIN passages p ON p.id = c.passage_id
LEFT JOIN (SELECT c, list({'start': start, 'end': start + size}) AS spans FROM found GROUP BY c) f USING (c)

-- counts: What the report counts.
SELECT count(*) FILTER (other_text) AS contexts_with_other_text,
    count(*) FILTER (len(gold) > 0 AND other_text) AS gold_lost_to_other_text,
    coalesce(sum(gold_missing), 0)::BIGINT AS gold_sentences_missing
FROM met

-- sets: The rows of question_sets.parquet.
SELECT split_part(name, '/', 1) AS question_set, split_part(name, '/', 2) AS split, id AS question_id
FROM (SELECT n, id, unnest(list_prepend(first, also)) AS name,
             unnest(range(len(also) + 1)) AS i FROM numbered)
ORDER BY n, i

-- contexts: The rows of contexts.parquet.
SELECT q.id AS question_id, passage_id, role, "order", grade, written AS title,
    CASE WHEN len(gold) > 0 AND NOT other_text THEN gold END AS gold
FROM met JOIN numbered q USING (n) ORDER BY c

-- The hosts: when their first and their newest row began, when that ended, whether they are gone, which is without rows of the
-- last minutes before the end, and the moment at which is counted what runs. That is one for all: shortly before the first of
-- the hosts that are not gone ends, so that the rows of all of them tell it; of hosts with clocks ahead it is as long before
-- their own end. The end is the last moment that a row is of, by most hosts: rows that go on for longer than those of twice as
-- many hosts, or ten times as many where that is lately, do not say it, and clocks that are ahead of the report's neither,
-- unless there are no others.
WITH ends AS (
  SELECT cluster, node, MIN(began_ms) AS first_ms, MAX(began_ms) AS newest_ms,
    CAST(FLOOR(MAX(began_ms + 1000 * seconds) + 0.5) AS BIGINT) AS until_ms
  FROM fleet_rows
  GROUP BY cluster, node
),
together AS (
  SELECT until_ms,
    COUNT(*) OVER (ORDER BY until_ms RANGE BETWEEN {{.GoneAfterMS}} PRECEDING AND CURRENT ROW) AS hosts
  FROM ends
  WHERE newest_ms <= {{.LatestMS}}
),
most AS (
  SELECT MAX(t.until_ms) AS until_ms, MAX(t.hosts) AS hosts
  FROM together t
  JOIN (SELECT MAX(hosts) AS hosts FROM together) m ON m.hosts = t.hosts
),
agreed AS (
  SELECT MAX(t.until_ms) AS until_ms
  FROM together t
  CROSS JOIN most m
  WHERE 2 * t.hosts > m.hosts OR (10 * t.hosts > m.hosts AND t.until_ms > {{.LatelyMS}})
),
ended AS (
  SELECT COALESCE(a.until_ms, l.until_ms) AS end_ms, COALESCE(m.until_ms, l.until_ms) AS most_ms, COALESCE(m.hosts, 0) AS most_hosts
  FROM agreed a
  CROSS JOIN most m
  CROSS JOIN (SELECT MAX(until_ms) AS until_ms FROM ends) l
),
there AS (
  SELECT MIN(e.first_ms) AS first_ms, MIN(e.until_ms) AS until_ms
  FROM ends e
  CROSS JOIN ended d
  WHERE e.until_ms > d.end_ms - {{.GoneAfterMS}}
),
moment AS (
  SELECT CASE WHEN until_ms - first_ms > 2 * {{.EndedMS}} THEN until_ms - {{.EndedMS}}
    ELSE CAST(FLOOR((first_ms + until_ms) / 2.0) AS BIGINT) END AS now_ms
  FROM there
)
SELECT e.cluster, e.node, e.first_ms, e.newest_ms, e.until_ms, d.end_ms, d.most_ms, d.most_hosts, m.now_ms,
  CASE WHEN e.until_ms < d.end_ms + {{.GoneAfterMS}} THEN m.now_ms ELSE e.until_ms - d.end_ms + m.now_ms END AS counted_ms,
  CASE WHEN e.until_ms <= d.end_ms - {{.GoneAfterMS}} THEN 1 ELSE 0 END AS gone
FROM ends e
CROSS JOIN ended d
CROSS JOIN moment m

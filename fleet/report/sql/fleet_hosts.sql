-- The hosts: when their newest row began, when it ended, and whether they are gone: without rows of the last minutes
-- before now. Now is the last moment that a row is of. Hosts with clocks that are ahead of the report's do not say it,
-- unless there are no others, and neither do the few whose rows go on after those of nine in ten ended at once.
WITH ends AS (
  SELECT cluster, node, MAX(began_ms) AS newest_ms,
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
agreed AS (
  SELECT MAX(t.until_ms) AS until_ms
  FROM together t
  CROSS JOIN (SELECT MAX(hosts) AS hosts FROM together) m
  WHERE 10 * t.hosts > m.hosts
),
moment AS (
  SELECT COALESCE(a.until_ms, l.until_ms) AS now_ms
  FROM agreed a
  CROSS JOIN (SELECT MAX(until_ms) AS until_ms FROM ends) l
)
SELECT e.cluster, e.node, e.newest_ms, e.until_ms, m.now_ms,
  CASE WHEN e.until_ms <= m.now_ms - {{.GoneAfterMS}} THEN 1 ELSE 0 END AS gone
FROM ends e
CROSS JOIN moment m

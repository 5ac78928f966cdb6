-- The hosts: when their newest row began, when it ended, its five minutes, and whether they are gone: without rows of
-- the last minutes before now. Now is the last moment that a row is of. Hosts with clocks that are ahead of the
-- report's do not say it, unless there are no others.
WITH ends AS (
  SELECT cluster, node, MAX(began_ms) AS newest_ms,
    CAST(FLOOR(MAX(began_ms + 1000 * seconds) + 0.5) AS BIGINT) AS until_ms,
    MAX(start_ms) AS last_start_ms
  FROM fleet_rows
  GROUP BY cluster, node
),
moment AS (
  SELECT COALESCE(MAX(CASE WHEN newest_ms <= {{.LatestMS}} THEN until_ms END), MAX(until_ms)) AS now_ms
  FROM ends
)
SELECT e.cluster, e.node, e.newest_ms, e.until_ms, e.last_start_ms, m.now_ms,
  CASE WHEN e.until_ms <= m.now_ms - {{.GoneAfterMS}} THEN 1 ELSE 0 END AS gone
FROM ends e
CROSS JOIN moment m

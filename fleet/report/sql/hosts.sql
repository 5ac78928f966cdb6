-- The hosts, with the beginning and the end of their newest row, whether they are gone, and how many containers ran on
-- those that are.
WITH ended AS (
  SELECT cluster, node, SUM(gone) AS containers FROM containers GROUP BY cluster, node
)
SELECT h.cluster, h.node, h.newest_ms, h.until_ms, h.end_ms, h.most_ms, h.most_hosts, h.gone,
  CASE WHEN h.gone = 0 AND h.first_ms <= h.counted_ms THEN 1 ELSE 0 END AS runs_now,
  CAST(COALESCE(e.containers, 0) AS BIGINT) AS containers
FROM fleet_hosts h
LEFT JOIN ended e ON e.cluster = h.cluster AND e.node = h.node
ORDER BY h.cluster, h.node

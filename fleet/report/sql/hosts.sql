-- The hosts, with the beginning of their newest row.
SELECT cluster, node, MAX(began_ms) AS newest_ms FROM fleet_rows GROUP BY cluster, node ORDER BY cluster, node

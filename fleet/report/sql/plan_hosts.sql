-- The hosts that are not gone, with the CPUs, their groups and the memory of their newest row that tells them.
WITH ranked AS (
  SELECT cluster, node, host_cpus, host_memory_bytes, host_groups,
    ROW_NUMBER() OVER (PARTITION BY cluster, node ORDER BY began_ms DESC, container_no) AS place
  FROM fleet_rows
  WHERE host_cpus IS NOT NULL AND host_memory_bytes IS NOT NULL
)
SELECT h.cluster, h.node, r.host_cpus, r.host_memory_bytes, COALESCE(r.host_groups, '') AS host_groups
FROM fleet_hosts h
LEFT JOIN ranked r ON r.cluster = h.cluster AND r.node = h.node AND r.place = 1
WHERE h.gone = 0 AND h.first_ms <= h.counted_ms
ORDER BY h.cluster, h.node

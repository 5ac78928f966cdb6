-- The containers that run now: where they are, what they have, the most memory that they needed, and what they used.
SELECT c.container_no, c.cluster, c.node, c.namespace, c.pod, c.container, c.service, c.remedy, c.allowed_cpus,
  c.cores_now,
  MAX(r.runtime) AS runtime, MAX(r.memory_bytes) AS memory_bytes,
  SUM(r.used_cpu_seconds) / SUM(CASE WHEN r.used_cpu_seconds IS NOT NULL THEN r.seconds END) AS used_cpus
FROM containers c
JOIN fleet_rows r ON r.container_no = c.container_no
WHERE c.runs_now = 1
GROUP BY c.container_no, c.cluster, c.node, c.namespace, c.pod, c.container, c.service, c.remedy, c.allowed_cpus,
  c.cores_now
ORDER BY c.container_no

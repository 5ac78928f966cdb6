-- The pinned containers that run now: which CPUs of their own they have, and how their host's are grouped, by their
-- newest row.
WITH ranked AS (
  SELECT container_no, host_groups, cpu_list, allowed_cpus,
    ROW_NUMBER() OVER (PARTITION BY container_no ORDER BY start_ms DESC, began_ms DESC) AS last_no
  FROM fleet_rows
  WHERE remedy = '{{.Pin}}'
)
SELECT c.container_no, COALESCE(r.host_groups, '') AS host_groups, COALESCE(r.cpu_list, '') AS cpu_list
FROM containers c
JOIN ranked r ON r.container_no = c.container_no AND r.last_no = 1 AND r.allowed_cpus = c.allowed_cpus
WHERE c.runs_now = 1 AND c.remedy = '{{.Pin}}'
ORDER BY c.container_no

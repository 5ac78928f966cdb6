-- How long each container used so many CPUs (width), and had so many threads that ran or were runnable (wanted), with the limit, the
-- remedy and the CPUs of now.
SELECT c.container_no, v.kind, v.cpus, CAST(SUM(v.microseconds) AS BIGINT) AS microseconds
FROM containers c
JOIN fleet_levels v ON v.container_no = c.container_no AND v.remedy = c.remedy
  AND COALESCE(v.own_limit_cpus, 0) = COALESCE(c.own_limit_cpus, 0) AND COALESCE(v.allowed_cpus, 0) = COALESCE(c.allowed_cpus, 0)
WHERE v.wanted_cpu_seconds IS NOT NULL
GROUP BY c.container_no, v.kind, v.cpus
ORDER BY c.container_no, v.kind, v.cpus

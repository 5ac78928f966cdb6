-- How long each container used so many CPUs (width), and had so many threads that ran or were runnable (wanted), with
-- the limit, the remedy and the CPUs of now.
SELECT c.container_no, v.kind, v.cpus, CAST(SUM(v.microseconds) AS BIGINT) AS microseconds
FROM containers c
JOIN fleet_levels v ON v.container_no = c.container_no AND {{asNow "v" "c"}}
WHERE v.wanted_cpu_seconds IS NOT NULL
GROUP BY c.container_no, v.kind, v.cpus
ORDER BY c.container_no, v.kind, v.cpus

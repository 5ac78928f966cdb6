-- The thread pools of the containers that run now, as their recordings have them at most: of each service, how many
-- containers have a pool with the same figures and the same limit. A pinned container's limit is its CPUs.
WITH at_most AS (
  SELECT container_no, pool, thread_name, MAX(threads) AS threads, MAX(runnable) AS runnable,
    MAX(runnable_p99) AS runnable_p99, MAX(running) AS running, MAX(default_cpus) AS default_cpus
  FROM fleet_pools
  GROUP BY container_no, pool, thread_name
),
limited AS (
  SELECT p.*, c.service,
    CASE WHEN c.remedy = '{{.Pin}}' THEN CAST(c.allowed_cpus AS DOUBLE) ELSE c.limit_cpus END AS limit_cpus
  FROM at_most p
  JOIN containers c ON c.container_no = p.container_no
  WHERE c.runs_now = 1
)
SELECT pool, thread_name, service, limit_cpus, threads, runnable, runnable_p99, running, default_cpus,
  COUNT(*) AS containers
FROM limited
GROUP BY pool, thread_name, service, limit_cpus, threads, runnable, runnable_p99, running, default_cpus
ORDER BY pool, thread_name, service, limit_cpus, threads, runnable, runnable_p99, running, default_cpus

-- Containers of pods that were made anew with a lower limit than those of their service had before, as a patch does it: since
-- when, and of those that run now which container of before each is compared with. Where some were made with the larger limit
-- later still, as where a service has several limits, there are none.
WITH limits AS (
  SELECT container_no, service, own_limit_cpus, MIN(began_ms) AS since_ms
  FROM fleet_rows
  WHERE remedy IN ('', {{.KeepLimit}}) AND own_limit_cpus IS NOT NULL
  GROUP BY container_no, service, own_limit_cpus
),
ordered AS (
  SELECT l.*, ROW_NUMBER() OVER (PARTITION BY container_no ORDER BY since_ms, own_limit_cpus DESC) AS place
  FROM limits l
),
created AS (
  SELECT o.*, ROW_NUMBER() OVER (PARTITION BY service, own_limit_cpus ORDER BY container_no) - 1 AS nth
  FROM ordered o
  WHERE place = 1
),
by_limit AS (
  SELECT service, own_limit_cpus, COUNT(*) AS containers, MIN(since_ms) AS first_ms, MAX(since_ms) AS last_ms
  FROM created
  GROUP BY service, own_limit_cpus
),
changes AS (
  SELECT b.*, LAG(own_limit_cpus) OVER (PARTITION BY service ORDER BY first_ms, own_limit_cpus DESC) AS limit_before,
    LAG(last_ms) OVER (PARTITION BY service ORDER BY first_ms, own_limit_cpus DESC) AS last_before_ms,
    LAG(containers) OVER (PARTITION BY service ORDER BY first_ms, own_limit_cpus DESC) AS containers_before
  FROM by_limit b
)
SELECT n.container_no, n.own_limit_cpus, CASE WHEN c.runs_now = 1 THEN b.container_no END AS before_no,
  CASE WHEN c.runs_now = 1 THEN c.remedy END AS remedy_now
FROM changes w
JOIN created n ON n.service = w.service AND n.own_limit_cpus = w.own_limit_cpus
JOIN created b ON b.service = w.service AND b.own_limit_cpus = w.limit_before AND b.nth = MOD(n.nth, w.containers_before)
JOIN containers c ON c.container_no = n.container_no
WHERE w.limit_before > w.own_limit_cpus AND w.last_before_ms < w.first_ms

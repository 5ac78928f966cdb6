-- What each remedy needs in each container: by the recording that was made in its busiest five minutes, of those with
-- the limit, the remedy and the CPUs of now that tell it of any remedy, and with the objective of the newest. The newest
-- need not be of a busy time, as after a deploy at night. A burst in a longer period than the limit has is a line of its own.
WITH usable AS (
  SELECT DISTINCT v.container_no, v.file_no, v.file_row, v.priced_at_ms,
    COALESCE(v.objective_quantile, 0) AS objective_quantile, COALESCE(v.objective_microseconds, 0) AS objective_us,
    COALESCE(v.used_cpu_seconds / v.seconds, 0) AS used_cpus
  FROM containers c
  JOIN fleet_prices v ON v.container_no = c.container_no AND {{asNow "v" "c"}}
  WHERE v.millicpus IS NOT NULL
),
aged AS (
  SELECT u.*, ROW_NUMBER() OVER (PARTITION BY container_no ORDER BY priced_at_ms DESC, file_no DESC, file_row DESC) AS age
  FROM usable u
),
ranked AS (
  SELECT u.*, ROW_NUMBER() OVER (
    PARTITION BY u.container_no
    ORDER BY u.used_cpus DESC, u.priced_at_ms DESC, u.file_no DESC, u.file_row DESC) AS place
  FROM aged u
  JOIN aged n ON n.container_no = u.container_no AND n.age = 1 AND n.objective_quantile = u.objective_quantile
    AND n.objective_us = u.objective_us
)
SELECT r.container_no, v.priced_of, v.priced_quantile, v.priced_microseconds, v.priced_remedy, 0 AS period_us, v.millicpus,
  v.low_millicpus, v.high_millicpus, r.used_cpus,
  CASE WHEN v.priced_quantile = v.objective_quantile AND v.priced_microseconds = v.objective_microseconds THEN 1 ELSE 0 END
    AS by_objective
FROM ranked r
JOIN fleet_prices v ON v.container_no = r.container_no AND v.file_no = r.file_no AND v.file_row = r.file_row
WHERE r.place = 1 AND v.millicpus IS NOT NULL
UNION ALL
SELECT r.container_no, v.priced_of, v.priced_quantile, v.priced_microseconds, '{{.Burst}}' AS priced_remedy,
  v.burst_period_microseconds AS period_us, v.millicpus, v.low_millicpus, v.high_millicpus, r.used_cpus,
  CASE WHEN v.priced_quantile = v.objective_quantile AND v.priced_microseconds = v.objective_microseconds THEN 1 ELSE 0 END
    AS by_objective
FROM ranked r
JOIN fleet_longprices v ON v.container_no = r.container_no AND v.file_no = r.file_no AND v.file_row = r.file_row
WHERE r.place = 1
ORDER BY 1, 5, 6

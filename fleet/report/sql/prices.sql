-- What each remedy needs in each container: by the recording that was made in its busiest five minutes, of those with
-- the limit, the remedy and the CPUs of now that tell it of any remedy. The newest recording need not be of a busy time,
-- as after a deploy at night.
WITH usable AS (
  SELECT DISTINCT v.container_no, v.file_no, v.file_row, v.priced_at_ms,
    COALESCE(v.used_cpu_seconds / v.seconds, 0) AS used_cpus
  FROM containers c
  JOIN fleet_prices v ON v.container_no = c.container_no AND {{asNow "v" "c"}}
  WHERE v.millicpus IS NOT NULL
),
ranked AS (
  SELECT u.*, ROW_NUMBER() OVER (
    PARTITION BY container_no ORDER BY used_cpus DESC, priced_at_ms DESC, file_no DESC, file_row DESC) AS place
  FROM usable u
)
SELECT r.container_no, v.priced_of, v.priced_quantile, v.priced_microseconds, v.priced_remedy, v.millicpus,
  v.low_millicpus, v.high_millicpus
FROM ranked r
JOIN fleet_prices v ON v.container_no = r.container_no AND v.file_no = r.file_no AND v.file_row = r.file_row
WHERE r.place = 1 AND v.millicpus IS NOT NULL
ORDER BY r.container_no, v.priced_remedy

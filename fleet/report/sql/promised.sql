-- What recordings before a remedy promised of it, in each container that has rows before it and with it: the least CPUs
-- by the recording of its busiest five minutes. And what came: its cores, and the same latency in the busiest five
-- minutes with the remedy. Latencies that are an objective are not what was recorded.
WITH told AS (
  SELECT a.container_no, a.remedy, a.in_force, a.core_seconds / a.seconds AS cores_with, b.core_seconds / b.seconds AS cores_before,
    v.priced_of, v.priced_quantile, v.priced_microseconds, v.objective_quantile, v.objective_microseconds, v.millicpus,
    v.low_millicpus, v.high_millicpus,
    ROW_NUMBER() OVER (PARTITION BY a.container_no, a.remedy
      ORDER BY COALESCE(v.used_cpu_seconds / v.seconds, 0) DESC, v.priced_at_ms DESC, v.file_no DESC, v.file_row DESC) AS place
  FROM remedied a
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy
  JOIN (
    SELECT container_no, remedy, began_ms, seconds, used_cpu_seconds, file_no, file_row, priced_at_ms, priced_of, priced_quantile,
      priced_microseconds, objective_quantile, objective_microseconds, millicpus, low_millicpus, high_millicpus, priced_remedy, 0 AS longer_us
    FROM fleet_prices
    WHERE millicpus IS NOT NULL
    UNION ALL
    SELECT container_no, remedy, began_ms, seconds, used_cpu_seconds, file_no, file_row, priced_at_ms, priced_of, priced_quantile,
      priced_microseconds, objective_quantile, objective_microseconds, millicpus, low_millicpus, high_millicpus, '{{.Burst}}' AS priced_remedy, burst_period_microseconds AS longer_us
    FROM fleet_longprices
  ) v ON v.container_no = a.before_no AND v.remedy = '' AND v.began_ms < a.since_ms AND v.priced_remedy = a.remedy
    AND v.longer_us = CASE WHEN a.remedy = '{{.Burst}}' THEN b.longer_us ELSE 0 END
),
came AS (
  SELECT t.container_no, t.remedy, v.priced_microseconds,
    ROW_NUMBER() OVER (PARTITION BY t.container_no, t.remedy
      ORDER BY COALESCE(v.used_cpu_seconds / v.seconds, 0) DESC, v.priced_at_ms DESC, v.file_no DESC, v.file_row DESC) AS place
  FROM told t
  JOIN fleet_prices v ON v.container_no = t.container_no AND v.remedy = t.in_force AND v.priced_of = t.priced_of
    AND v.priced_quantile = t.priced_quantile
  WHERE t.place = 1 AND NOT (v.priced_quantile = COALESCE(v.objective_quantile, 0)
    AND v.priced_microseconds = COALESCE(v.objective_microseconds, 0))
)
SELECT t.container_no, t.remedy, t.cores_before, COALESCE(c.cores_now, t.cores_with) AS cores_after, t.millicpus,
  t.low_millicpus, t.high_millicpus,
  CASE WHEN NOT (t.priced_quantile = COALESCE(t.objective_quantile, 0)
    AND t.priced_microseconds = COALESCE(t.objective_microseconds, 0)) THEN t.priced_microseconds END AS before_us,
  k.priced_microseconds AS after_us
FROM told t
LEFT JOIN came k ON k.container_no = t.container_no AND k.remedy = t.remedy AND k.place = 1
LEFT JOIN containers c ON c.container_no = t.container_no AND c.remedy = t.in_force
WHERE t.place = 1
ORDER BY t.remedy, t.container_no

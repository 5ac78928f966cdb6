-- Of each line of the rollouts, how long requests took in agents' recordings of the day before its remedy (with_it 0), and of the day
-- after (1).
WITH taken AS (
  SELECT l.service_no, l.line_no, 0 AS with_it, v.microseconds, v.answered
  FROM rollout_lines l
  JOIN fleet_requests v ON v.container_no = l.before_no AND v.remedy = '' AND v.began_ms < l.since_ms
    AND v.began_ms >= l.since_ms - {{.RolloutSlots}} * {{.RolloutSlotMS}}
  UNION ALL
  SELECT l.service_no, l.line_no, 1 AS with_it, v.microseconds, v.answered
  FROM rollout_lines l
  JOIN fleet_requests v ON v.container_no = l.container_no AND v.remedy = l.in_force AND v.began_ms >= l.since_ms
    AND v.began_ms < l.since_ms + {{.RolloutSlots}} * {{.RolloutSlotMS}}
)
SELECT service_no, line_no, with_it, microseconds, CAST(SUM(answered) AS BIGINT) AS times
FROM taken
GROUP BY service_no, line_no, with_it, microseconds
ORDER BY service_no, line_no, with_it, microseconds

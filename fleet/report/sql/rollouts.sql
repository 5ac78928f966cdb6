-- Of each line of the rollouts, for how much of each stretch of time it was stopped, from a day before its remedy to a day after.
WITH pieces AS (
  SELECT l.*, l.container_no AS piece_of, l.since_ms AS from_ms, l.since_ms + {{.RolloutSlots}} * {{.RolloutSlotMS}} AS to_ms
  FROM rollout_lines l
  UNION ALL
  SELECT l.*, l.before_no AS piece_of, l.since_ms - {{.RolloutSlots}} * {{.RolloutSlotMS}} AS from_ms, l.since_ms AS to_ms
  FROM rollout_lines l
)
SELECT l.service_no, l.service, l.remedy, l.containers, l.line_no, l.cluster, l.node, l.pod, l.since_ms,
  CAST(FLOOR((r.began_ms - l.since_ms) / {{.RolloutSlotMS}}.0) AS INTEGER) AS slot,
  SUM(r.stopped_high_seconds) / SUM(r.seconds) AS stopped_share
FROM pieces l
JOIN fleet_rows r ON r.container_no = l.piece_of AND r.began_ms >= l.from_ms AND r.began_ms < l.to_ms
WHERE r.stopped_high_seconds IS NOT NULL
GROUP BY l.service_no, l.service, l.remedy, l.containers, l.line_no, l.cluster, l.node, l.pod, l.since_ms,
  CAST(FLOOR((r.began_ms - l.since_ms) / {{.RolloutSlotMS}}.0) AS INTEGER)
ORDER BY l.service_no, l.line_no, slot

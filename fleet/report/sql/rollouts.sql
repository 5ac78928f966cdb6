-- Services with a remedy in force, those of most containers first, and some of the containers that have rows before it and
-- with it, those that run now first, and of these those that were stopped most before it: for how much of each stretch of
-- time from a day before it to a day after. Engines add up in any order, so that containers are ranked by thousandths of
-- their stopped share.
WITH treated AS (
  SELECT c.container_no, c.service, c.cluster, c.node, c.pod, c.runs_now, a.remedy, a.since_ms,
    FLOOR(1000 * b.stopped / b.seconds + 0.37) AS stopped_before
  FROM containers c
  JOIN remedied a ON a.container_no = c.container_no AND a.remedy = c.remedy
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy
),
services AS (
  SELECT c.service, c.remedy, COUNT(*) AS containers,
    ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, c.service, c.remedy) AS service_no
  FROM containers c
  JOIN (SELECT DISTINCT service, remedy FROM treated) t ON t.service = c.service AND t.remedy = c.remedy
  WHERE c.runs_now = 1
  GROUP BY c.service, c.remedy
),
ranked AS (
  SELECT t.*, s.containers, s.service_no,
    ROW_NUMBER() OVER (PARTITION BY t.service, t.remedy ORDER BY t.runs_now DESC, t.stopped_before DESC, t.container_no) AS line_no
  FROM treated t
  JOIN services s ON s.service = t.service AND s.remedy = t.remedy
  WHERE s.service_no <= {{.MostRollouts}}
)
SELECT l.service_no, l.service, l.remedy, l.containers, l.line_no, l.cluster, l.node, l.pod, l.since_ms,
  CAST(FLOOR((r.began_ms - l.since_ms) / {{.RolloutSlotMS}}.0) AS INTEGER) AS slot,
  SUM(r.stopped_high_seconds) / SUM(r.seconds) AS stopped_share
FROM ranked l
JOIN fleet_rows r ON r.container_no = l.container_no
  AND r.began_ms >= l.since_ms - {{.RolloutSlots}} * {{.RolloutSlotMS}}
  AND r.began_ms < l.since_ms + {{.RolloutSlots}} * {{.RolloutSlotMS}}
WHERE l.line_no <= {{.MostLines}} AND r.stopped_high_seconds IS NOT NULL
GROUP BY l.service_no, l.service, l.remedy, l.containers, l.line_no, l.cluster, l.node, l.pod, l.since_ms,
  CAST(FLOOR((r.began_ms - l.since_ms) / {{.RolloutSlotMS}}.0) AS INTEGER)
ORDER BY l.service_no, l.line_no, slot

-- Services with a remedy in force, those of most containers first, and some of the containers that have rows before it and
-- with it, those that run now first, and of these those that were stopped most before it. Engines add up in any order, so
-- that containers are ranked by thousandths of their stopped share.
WITH treated AS (
  SELECT c.container_no, c.service, c.cluster, c.node, c.pod, c.runs_now, a.remedy, a.in_force,
    a.before_no, a.since_ms,
    FLOOR(1000 * b.stopped / b.seconds + 0.37) AS stopped_before
  FROM containers c
  JOIN remedied a ON a.container_no = c.container_no AND a.in_force = c.remedy
  JOIN untreated b ON b.container_no = a.container_no AND b.remedy = a.remedy
),
services AS (
  SELECT c.service, t.remedy, COUNT(*) AS containers,
    ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC, c.service, t.remedy) AS service_no
  FROM containers c
  JOIN (SELECT DISTINCT service, remedy, in_force FROM treated) t ON t.service = c.service AND t.in_force = c.remedy
  WHERE c.runs_now = 1
  GROUP BY c.service, t.remedy
),
ranked AS (
  SELECT t.*, s.containers, s.service_no,
    ROW_NUMBER() OVER (PARTITION BY t.service, t.remedy ORDER BY t.runs_now DESC, t.stopped_before DESC, t.container_no) AS line_no
  FROM treated t
  JOIN services s ON s.service = t.service AND s.remedy = t.remedy
  WHERE s.service_no <= {{.MostRollouts}}
)
SELECT * FROM ranked WHERE line_no <= {{.MostLines}}

-- Of pods whose own quota stopped a container: which service of the pod used most of the CPU time meanwhile. A line per
-- stopped service and the service that spent.
WITH pods AS (
  SELECT service, cluster, node, namespace, pod, start_ms, SUM(throttled_pod_seconds) AS throttled
  FROM fleet_rows
  WHERE pod <> '' AND throttled_pod_seconds > 0
  GROUP BY service, cluster, node, namespace, pod, start_ms
),
spent AS (
  SELECT p.service, r.service AS spent_by, SUM(r.used_cpu_seconds) AS cpu_seconds
  FROM pods p
  JOIN fleet_rows r ON r.cluster = p.cluster AND r.node = p.node AND r.namespace = p.namespace AND r.pod = p.pod
    AND r.start_ms = p.start_ms
  WHERE r.used_cpu_seconds IS NOT NULL
  GROUP BY p.service, r.service
),
ranked AS (
  SELECT s.*, ROW_NUMBER() OVER (PARTITION BY service ORDER BY cpu_seconds DESC, spent_by) AS place FROM spent s
)
SELECT service, spent_by FROM ranked WHERE place = 1 ORDER BY service

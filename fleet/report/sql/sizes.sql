-- The containers, for the model.
SELECT container_no, cluster, node, namespace, pod, container, service, remedy, limit_cpus, own_limit_cpus,
  request_cpus, allowed_cpus, runs_now, imported, cores_now, first_ms, until_ms, measured_seconds, stopped_high_seconds,
  widest_mean_cpus, candidate_seconds, candidate_periods, candidate_from
FROM containers
ORDER BY container_no

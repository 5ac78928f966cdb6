// Package mixin holds what Prometheus and Grafana load to watch the agents: recording rules, alerts and dashboards.
//
// # Problem
//
// A rule or a dashboard that names a metric or a label that no agent has is silent for ever, and nothing reports it.
//
// # Rule
//
// rules.yaml, alerts.yaml and dashboards/*.json are the one source. The package parses them, so that tests compare what
// they name with what an agent exports (internal/agent), and run each query on a real Prometheus (make
// e2e-prometheus). tests/*.yaml are for promtool (make mixin-test).
//
// # Worked example
//
//	rate(unthrottle_container_stopped_low_seconds_total{instance=~"$instance"}[$__rate_interval])
//
// in a dashboard is the query rate(unthrottle_container_stopped_low_seconds_total{instance=~".*"}[5m]): Query has filled
// in what Grafana fills in, with the widest choice.
//
// # Limits
//
// The package does not parse PromQL: promtool and Prometheus do.
package mixin

// Package podprobes tells the agent of one node which probes the kubelet makes of the node's pods, and tells the pods
// what the agent finds of them.
//
// # Problem
//
// Whether stops make a probe fail follows from the probe's timing, which the API server has, and from the stops, which
// the agent has. The agent never uses the API. What came of a trial that it spread over hours, it cannot tell a pod either.
//
// # Rule
//
// [Run] watches the pods of its own node, and writes a file with what [Of] takes from them: the liveness and readiness
// probes of containers that run, from when on the kubelet makes them, and how each container ended before. The agent
// reads the file, and answers its findings at GET /probes. Each finding becomes an event of its pod, one per probe and
// day. Its name follows from pod, probe and day, so that a program that starts again makes no second one. What came of a trial is
// asked at GET /trials, and becomes an event within a day. The event of a static pod is about the pod that mirrors it in the API.
//
// # Example
//
// A pod with "livenessProbe: {httpGet: {...}, initialDelaySeconds: 30}" whose container began at 03:00:00 has one
// probe, from 03:00:30 on.
//
// # Limits
//
// The API has the last end of a container only: earlier ones are known if they were seen here within a day. A probe
// that waits for a startup probe begins when that is seen to have succeeded. RBAC knows no selector, so that the right
// to watch the node's own pods is that to watch all.
package podprobes

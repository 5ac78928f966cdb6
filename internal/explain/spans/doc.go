// Package spans joins a recording's stops with the spans of distributed traces.
//
// # Problem
//
// A trace shows that a request took 140 ms and not why: its service did nothing in 81 of them, and no span says what. The kernel's stops
// are known exactly, and nobody has them beside the spans.
//
// # Rule
//
// Spans come and go as OTLP in JSON (opentelemetry-proto, "JSON Protobuf Encoding"), as OpenTelemetry's collector writes and reads
// files. A resource is the recorded container's where its attributes say so, by OpenTelemetry's semantic conventions: container.id is
// part of the cgroup's path, or k8s.pod.name and k8s.container.name (and k8s.namespace.name, if it is there) are the recording's; or
// where the caller names its service. Of such a resource each span gets what its container was stopped for between its start and its end,
// from leastTold on. What a span had stays as it was, also what this package does not know. Spans that lie partly outside of the recording
// say "at least".
//
// # Worked example
//
// A span of 140 ms with two stops in it, of 60 and 21 ms, by the container's own quota gets
//
//	unthrottle.stopped     "stopped 81 of 140 ms by its own quota"
//	unthrottle.stopped_ms  81
//	unthrottle.stopped_by  "own quota"
//
// # Limits
//
// A stop is of the container. A span that waits for a database meanwhile was not delayed by it. While some threads still run on what
// their CPU has left of the quota (a slice, 5 ms), and others are held back, nothing is told of either. Spans and
// recording must be of clocks that agree: the same host's, or hosts that keep time.
package spans

// Package loadgen sends requests to a service at times of its own choosing and
// measures how long each took.
//
// # Problem
//
// A client that waits for its answer before it asks again slows down with the
// service: while the service is stopped for 50 ms it sends nothing, and 50
// requests that users would have sent never enter the figures. What is left
// looks healthy. And a generator that shares CPUs with the container can be the
// bottleneck itself, and measure its own waits.
//
// # Rule
//
// The generator is a process of its own, outside the container's cgroups, on CPUs
// that the container cannot use where there are some. It is open-loop: all
// intended times are drawn beforehand from a seed, and a request's latency runs
// from its intended time to the answer, through every delay of client, retries
// and service alike. It asks for real-time priority, so that it is late because
// of nobody; how late it was with each sending, and what CPU it used, is part of
// the result. Where it was late often it says so, and there are no figures.
//
// # Worked example
//
// 100 requests per second, and a service that is stopped for 200 ms once in two
// seconds: 20 of 200 requests fall into the stop and wait 0 to 200 ms, so p99 is
// 180 ms. A closed loop with one connection would count one request of 200 ms
// among 2,000: p99 of 1 ms.
//
// # Retries
//
// A try that has no answer after the timeout counts as lost, and the same request
// is tried again, up to Retries.Max times and while the budget lasts: each
// request earns Retries.Budget of a retry. The service does not learn that a try
// was given up, and works on it nevertheless, as most do. A request's latency is
// that of its first good answer; one that has none counts as failed, with the
// time that it took to give up.
//
// # Limits
//
// [MaxConnections] connections, [MaxInFlight] requests on their way (what comes
// on top fails at once and is counted), [MaxDuration]. Latencies are kept in
// HdrHistograms with three digits, up to [MaxLatency].
//
// Sources: Gil Tene, "How NOT to measure latency" (coordinated omission);
// HdrHistogram; Bronson et al., "Metastable failures in distributed systems"
// (HotOS 2021) on retries.
package loadgen

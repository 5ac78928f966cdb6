// Package loadgen sends requests to a service at times of its own choosing and
// measures how long each took.
//
// # Problem
//
// A client that waits for each answer slows down with the service. While the service
// is stopped for 50 ms, such a client sends nothing. The 50 requests that users would
// have sent never enter the figures, so that they look healthy. A generator that
// shares CPUs with the container can also be the bottleneck, and then it measures its
// own waits.
//
// # Rule
//
// The generator is a separate process outside the container's cgroups. It runs on
// CPUs that the container cannot use, where the host has some. It is open-loop: it
// draws all intended times from a seed before it starts. The latency of a request
// runs from its intended time to the answer, through delays of client, retries and
// service.
//
// It asks for real-time priority, so that other threads do not make it late. The
// result says how late each sending was and what CPU time the generator used. Where
// it was late often it reports that instead of figures.
//
// # Worked example
//
// A service gets 100 requests per second and is stopped for 200 ms once in two
// seconds. Of 200 requests 20 fall into the stop. They wait 0 to 200 ms, so that p99
// is 180 ms. A closed loop with one connection would count one request of 200 ms
// among 2,000: p99 of 1 ms.
//
// # Retries
//
// A try without an answer counts as lost after the timeout. The generator then tries
// the same request again, up to Retries.Max times and while the budget lasts: each
// request earns Retries.Budget of a retry. The service does not learn of the timeout
// and works on the lost try, as most services do. The latency of a request is that of
// its first good answer. A request without one counts as failed, with the time until
// the generator gave it up.
//
// # Limits
//
// [MaxConnections] connections, [MaxInFlight] requests on their way (further ones
// fail at once and are counted), [MaxDuration]. HdrHistograms keep latencies with
// three digits, up to [MaxLatency].
//
// Sources: Gil Tene, "How NOT to measure latency" (coordinated omission);
// HdrHistogram; Bronson et al., "Metastable failures in distributed systems"
// (HotOS 2021) on retries.
package loadgen

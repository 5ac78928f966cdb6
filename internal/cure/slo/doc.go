// Package slo runs the user's own latency source: a command that prints one latency in milliseconds per line, such as a load
// generator or a query against a metrics store. These numbers, and not the kernel's, decide whether a remedy helped: stopped
// time is a means, the user's latency is the end.
//
// # The rule
//
// The command is split into words as a shell would split them, but no shell runs: no variables, pipes, globs or backquotes.
// It runs as the user who called unthrottle; under sudo that is the user behind it, not root. It has 30 seconds. Then its
// whole process group is killed, and its output so far does not count. Its output is bounded.
//
// A source should give latencies of requests that began after a moment: the whole second, rounded up, that stands in RFC 3339
// in the environment variable UNTHROTTLE_SINCE and in place of {since} in the command. A source that cannot do that, such as
// one that always gives the last 20 s, declares how far it looks back, and the caller waits for that long before it asks.
//
// A line may have a time before the latency: when that request began, in RFC 3339 or in seconds since 1970. Then what began
// before that moment is left out, whatever the source looks back on, and backlogs are recognised (package verdict). A source
// prints times on all lines or on none.
//
// # Worked example
//
//	slo.Run(ctx, `curl -s http://127.0.0.1:8080/latencies?since={since}`, applied)
//
// prints "3.1\n2.9\n97.4\n"; the caller takes the objective's quantile of it. With times it prints
// "2026-11-23T02:10:04.25Z 3.1\n2026-11-23T02:10:04.31Z 2.9\n".
//
// # Limits
//
// Under sudo, a source that needs root must be reachable for the calling user in another way. Whether the numbers are
// representative is not checked. Times are those of the source's clock: if it is ahead of this host's by more than 2 s the
// answer is an error, and if it is behind, latencies of the last moments are left out.
package slo

// Package prober tells how often the probes of a kubelet miss their timeout since a CPU quota stops the container.
//
// # Problem
//
// A liveness probe fails, the kubelet restarts the container, and nobody sees that the container was fine: it could not
// run while the probe waited for its answer.
//
// # Rule
//
// A probe that begins at t is answered once the container could run for the time that the answer takes. It misses if
// from t to t + timeoutSeconds the container could run for less: the wall time of that span without the time in which a
// quota held back a runnable thread of the container. The kubelet begins one probe per periodSeconds, at a phase that
// has nothing to do with the container. So each moment counts for 1/periodSeconds probes: the misses are the length of
// all moments at which a probe misses, divided by the period. A moment continues a row if the one a period before it
// missed too. Each failureThreshold misses in a row are one failure: then the kubelet restarts the container, or takes
// the pod out of its services, and counts anew.
//
// Where only the sum of the stops in a piece of time is known, and not when they were, there are two figures: the least
// and the most that any order within the pieces gives. Of exact stops (pieces that are stopped as a whole, or not at
// all) both are equal.
//
// # What is assumed of the answer
//
// An answer takes running time: none of it passes while the container is stopped, and all of it once the container
// runs, as if the probe were the first that gets a CPU. Work that is queued before it in the program is not known, and
// makes it later. How much an answer takes is not known either, so that figures are for a given time ([Answers]): for
// one that is prompt, which makes the figure a lower bound for any other, and for one that takes a tenth of the
// timeout.
//
//   - httpGet and grpc: the program answers. Prompt is a millisecond.
//   - exec: the runtime starts a process in the container's cgroup, which takes from the same quota. Prompt is 10 ms.
//   - tcpSocket: the kernel accepts the connection, whether the program runs or not. Stops make it miss nothing.
//
// # Worked example
//
// Once a minute a container is stopped for 940 ms in one go. It is asked each 10 s, and the timeout is a second. An
// answer that takes 100 ms misses if less than that is left of the second: if the probe begins in the 100 ms before the
// stop, or in its first 40 ms. These 140 ms of each minute are 0.014 misses, 20 a day. No two of them follow each
// other. A prompt answer never misses.
//
// # Limits
//
// A startup probe mostly waits for the program, and has no figures. A kubelet begins no probe while one waits, which
// this rule does not know: it matters where the timeout is longer than the period. Spans that are shorter than a 64th
// of the timeout and a 128th of the period are joined, which bounds the memory of a [Watch] and widens its two figures.
// What happens after a restart is another container.
//
// Sources: kubernetes v1.36 pkg/kubelet/prober/{worker,prober}.go (a ticker per probe, failureThreshold results in a
// row); pkg/probe/tcp; the fields' defaults in pkg/apis/core/v1/defaults.go.
package prober

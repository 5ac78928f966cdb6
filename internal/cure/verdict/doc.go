// Package verdict compares a user's latencies and the neighbours' figures before and after a remedy. It is pure.
//
// Problem: a remedy is worth keeping only if the user's own latency improves. Counters show stops, not tails.
//
// Rule: see [Judge]. Without latencies the verdict is always "unverified". Otherwise the quantile and the longest latency
// decide, and the worse of the two counts. A neighbour that is stopped longer than before makes it worse.
//
// Worked example: p99 falls from 97 ms (95 to 99) to 12 ms (11 to 13) over 1,000 samples each: "better".
//
// Recorded runs of threads ([JudgeRuns]) depend on each other where they waited in one backlog. They are compared in
// blocks, one for each backlog: by a permutation test of the quantile over the blocks, exact where there are few, and by
// Rosenbaum's test of the longest of each block. They are also better where the same work takes less time: by a permutation
// test of each block's longest response as a multiple of its CPU time, where the tail does not contradict.
//
// Worked example of runs: 8 runs wait for one stop and take 520 ms; before, the longest were 310 ms. Taken one by one, 8
// runs beyond the longest of before would be worse. They are one block of 9, which chance puts on top in half of all
// cases: no change.
//
// A user's latencies with times are compared in the same blocks: a request belongs to the block of the request before it if
// it began while that one was not yet answered.
//
// Limits: latencies without times of one backlog count as independent, which makes the intervals narrower than they are.
// A backlog that lasts for more than half of the recording is cut into blocks, of which each
// depends a little on the one before it. Shorter ones stay whole: where all above 1 s were cut, 5.9 of 100 comparisons of
// alike work were worse by p99, of a server that is busy for 83 % of the time, instead of 2.5; uncut they are 3.1.
//
// Sources: S. Rosenbaum, "Tables for a nonparametric test of location" (1954), for the longest latency. M. Gail et al.,
// "On design considerations and randomization-based inference for community intervention trials" (Statistics in Medicine
// 15, 1996), for permutations of whole groups. B. Phipson and G. Smyth, "Permutation P-values should never be zero" (2010),
// for drawn permutations. A. Law, "Simulation Modeling and Analysis", chapter 9, for cutting what does not end into
// batches.
package verdict

// Package verdict compares a user's latencies and the neighbours' figures before and after a remedy. It is pure.
//
// Problem: a remedy is worth keeping only if the user's own latency improves. Counters show stops, not tails.
//
// Rule: see [Judge]. Without latencies the verdict is always "unverified". Otherwise the quantile and the longest latency
// decide, and the worse of the two counts. A neighbour that is stopped longer than before makes it worse.
//
// Worked example: p99 falls from 97 ms (95 to 99) to 12 ms (11 to 13) over 1,000 samples each: "better".
//
// Limits: samples that depend on each other make the intervals narrower than they are.
//
// Source: S. Rosenbaum, "Tables for a nonparametric test of location" (1954), for the longest latency.
package verdict

//go:build race

package remedy

// The race detector makes each host ten times as dear.
const randomHosts = 100

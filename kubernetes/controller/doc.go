// Package controller keeps the agent's rules file of one node true to the policies in the Kubernetes API, and their statuses
// true to what became of them.
//
// Each node has one. All write their own file. Only the holder of a lease writes statuses and events, which follow from
// the objects alone and are the same on each node. Package policies decides all; this one reads and writes. On rollouts package
// rollouts decides, on several at a time and beside the loop, since it waits for Prometheus.
//
// # Limits
//
// A change of the file restarts the agent's rounds and ends its change on trial, so that the file is written once in
// Options.LeastInterval at most. Without the API server the file stays as it is.
package controller

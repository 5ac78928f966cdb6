//go:build race

package require

// Raced says that the race detector is on.
const Raced = true

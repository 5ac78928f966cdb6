// Package diagnose says why a container stood still: from a recording, or from
// counters alone, to causes, ranked, each with the evidence that decides it.
package diagnose

// Package remedy plans what ends throttling: which settings to write, what
// that is expected to bring, and why not where it must not be done. It writes
// nothing.
package remedy

// Package policy decides which remedy for which container, and says why not
// the others.
package policy

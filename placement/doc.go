// Package placement chooses which CPUs a container gets.
package placement

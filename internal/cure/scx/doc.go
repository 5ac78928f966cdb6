// Package scx holds a cgroup at its limit's width with a scheduler of its own (sched_ext).
package scx

// Package ask asks a process what its threads are for: /proc, and a JVM itself where the user wants that.
package ask

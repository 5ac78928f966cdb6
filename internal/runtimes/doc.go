// Package runtimes says what the language runtimes of a process decide from their CPUs, and what fits its limit.
//
// # Problem
//
// Each runtime counts CPUs in its own way. Of a limit of 1.5 CPUs on a host of 64 the JVM makes 2, Rust 1, Go 2, and OpenMP
// 64. Most decide once, at their start, so that a limit that changes later changes nothing.
//
// # Rule
//
// The table of package threadpool (pools.yaml, settings) has a row for each figure: what it is by itself, which variable or
// flag sets it, and what fits. [Plan] makes of it the environment and arguments of a program that is about to start; what the
// user has set stays. [Decide] makes of it what a running process decided: what it was told, else what its rule makes of the
// limit of now.
//
// # Example
//
//	limit 1.5 CPUs of 8     by itself   fits
//	JVM processors              2         1      JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount=1
//	Go processors               2         1      GOMAXPROCS=1
//	OpenMP threads              8         1      OMP_NUM_THREADS=1
//
// # Limits
//
// A figure that code sets, such as by runtime.GOMAXPROCS, cannot be seen from outside. Without a limit what fits is a multiple
// of the CPU request, which is read from the weight: a weight that no one set says nothing.
package runtimes

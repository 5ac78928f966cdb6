package engine

import (
	"fmt"
	"slices"
)

// Kind is what a column holds.
type Kind int

// Kinds of columns. Text is never null, but empty. Milliseconds are since 1970. Levels and what comes after are lists.
const (
	Integer Kind = iota + 1 // of 32 bits
	BigInt                  // of 64 bits
	Double
	Text
	Milliseconds
	// Levels are histograms. A table of their lines has kind (the column's name), cpus and microseconds.
	Levels
	// Candidates are other limits. A table of their lines has the fields of the list.
	Candidates
	// Stops are lengths of stops, Responses of runs by role, Requests of requests. A table of their lines has the fields of the list.
	Stops
	Responses
	Requests
)

// Column is one that is read: its name in the files, and in the table.
type Column struct {
	Name, Becomes string
	Is            Kind
}

// Columns are those of docs/reference/fleet-rows.md that questions ask of, in the order of the table.
var Columns = []Column{
	{"schema", "schema_version", Integer}, {"start", "start_ms", Milliseconds}, {"began", "began_ms", Milliseconds}, {"seconds", "seconds", Double},
	{"samples", "samples", Integer}, {"cluster", "cluster", Text}, {"node", "node", Text}, {"namespace", "namespace", Text},
	{"pod", "pod", Text}, {"container", "container", Text}, {"service", "service", Text}, {"cgroup", "cgroup", BigInt},
	{"limit_cpus", "limit_cpus", Double}, {"own_limit_cpus", "own_limit_cpus", Double}, {"request_cpus", "request_cpus", Double},
	{"allowed_cpus", "allowed_cpus", Integer}, {"used_cpu_seconds", "used_cpu_seconds", Double}, {"wanted_cpu_seconds", "wanted_cpu_seconds", Double},
	{"stopped_low_seconds", "stopped_low_seconds", Double}, {"stopped_high_seconds", "stopped_high_seconds", Double},
	{"throttled_own_seconds", "throttled_own_seconds", Double}, {"throttled_pod_seconds", "throttled_pod_seconds", Double},
	{"throttled_slice_seconds", "throttled_slice_seconds", Double}, {"throttled_inside_seconds", "throttled_inside_seconds", Double},
	{"remedy", "remedy", Text}, {"width", "width", Levels}, {"wanted", "wanted", Levels},
	{"period_microseconds", "period_us", BigInt}, {"candidate_seconds", "candidate_seconds", Double}, {"candidate_from", "candidate_from", Integer},
	{"candidates", "candidates", Candidates}, {"runtime", "runtime", Text},
	{"host_cpus", "host_cpus", Integer}, {"host_memory_bytes", "host_memory_bytes", BigInt}, {"memory_bytes", "memory_bytes", BigInt},
	{"waiting_quota_seconds", "waiting_quota_seconds", Double}, {"waiting_ancestor_seconds", "waiting_ancestor_seconds", Double},
	{"waiting_contention_seconds", "waiting_contention_seconds", Double}, {"waiting_unclear_seconds", "waiting_unclear_seconds", Double},
	{"stops", "stops", Stops}, {"recorded_seconds", "recorded_seconds", Double}, {"responses", "responses", Responses},
	{"request_count", "request_count", BigInt}, {"requests", "requests", Requests}, {"host_groups", "host_groups", Text}, {"cpu_list", "cpu_list", Text},
}

// Fields are the columns of a list's elements; nil: the kind is no list.
func (k Kind) Fields() []Column {
	switch k {
	case Levels:
		return []Column{{"cpus", "cpus", Integer}, {"microseconds", "microseconds", BigInt}}
	case Candidates:
		return []Column{{"step", "step", Integer}, {"stopped_microseconds", "stopped_us", BigInt}, {"throttled_periods", "throttled", BigInt},
			{"delay_microseconds", "delay_us", BigInt}, {"burst_stopped_microseconds", "burst_stopped_us", BigInt}, {"burst_delay_microseconds", "burst_delay_us", BigInt}}
	case Stops:
		return []Column{{"microseconds", "stop_us", BigInt}, {"periods", "stopped_periods", BigInt}}
	case Responses:
		return []Column{{"role", "role", Text}, {"microseconds", "response_us", BigInt}, {"count", "runs", BigInt}}
	case Requests:
		return []Column{{"microseconds", "request_us", BigInt}, {"count", "answered", BigInt}}
	}
	return nil
}

// Lists are all columns that hold lists.
func Lists() (names []string) {
	for _, c := range Columns {
		if c.Is.Fields() != nil {
			names = append(names, c.Becomes)
		}
	}
	return names
}

// Lists are the columns that hold lists of a kind.
func (k Kind) Lists() (names []string) {
	for _, c := range Columns {
		if c.Is == k {
			names = append(names, c.Becomes)
		}
	}
	return names
}

// generations are the columns that came later, in their order: files of older programs have only the first generations, or none. What they
// have not is null in the table.
var generations = [][]string{
	{"period_microseconds", "candidate_seconds", "candidate_from", "candidates"},
	{"host_cpus", "host_memory_bytes", "memory_bytes"},
	{"waiting_quota_seconds", "waiting_ancestor_seconds", "waiting_contention_seconds", "waiting_unclear_seconds"},
	{"stops"},
	{"recorded_seconds", "responses", "request_count", "requests", "host_groups", "cpu_list"},
}

// Newest is the age of files that have all columns.
var Newest = len(generations)

// Lack are the columns that files of an age lack.
func Lack(age int) []string { return slices.Concat(generations[age:]...) }

// Later are the columns that files of an age have and the oldest lack.
func Later(age int) []string { return slices.Concat(generations[:age]...) }

// Age is that of a file, by the columns that it has.
func Age(has func(column string) bool) (age int) {
	for age < Newest && !slices.ContainsFunc(generations[age], func(name string) bool { return !has(name) }) {
		age++
	}
	return age
}

// NoColumn is the error for a file without a column.
func NoColumn(quoted string) error {
	return fmt.Errorf("it has no column %s: it is another program's, or of another version", quoted)
}

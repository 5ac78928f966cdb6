package threadpool

// Class is what the threads of a pool are for, and so how the pool is sized.
type Class string

// The classes.
const (
	IO         Class = "io"         // must not block; few threads serve many connections
	App        Class = "app"        // work on the CPU
	Blocking   Class = "blocking"   // mostly off the CPU: sized by what waits, not by CPUs
	Background Class = "background" // nobody waits for it
	VM         Class = "vm"         // the runtime's own: collector, compiler, bookkeeping
)

// Row is what the table knows of one pool.
type Row struct {
	Key     string   // names the row, such as "netty-nio"
	Names   []string // full thread names; {n} is a number, {s} any text, {program} the program's name
	Library string
	Class   Class
	Runtime string // whose rule turns a limit into CPUs: a key of the table's runtimes
	// Setting sizes the pool; "": nothing does. OtherSettings do as well.
	Setting       string
	OtherSettings []string
	// Least is the smallest value that the setting takes; 0: 1.
	Least int
	// Formula gives the default from n, the CPUs that the runtime believes it has; "": no formula of n, see Default.
	Formula string
	// Default says in words what a formula cannot.
	Default string
	// Live: a setting can be changed while the process runs; LiveHow says through what.
	Live    bool
	LiveHow string
	// Source is where the row is from; Unverified: general knowledge that nobody here checked.
	Source     string
	Unverified bool
	// Since and Until are versions of the library or runtime with this name and default; "": not known to be bounded.
	Since, Until string

	// Because says in words what the match rests on, such as "its name" or "libopenblas.so.0 is mapped". Set by Match.
	Because string
	// Also are the libraries of other rows that fit as well as this one. Set by Match.
	Also []string
	// Given is a setting with a value found on the process's command line, safe to print. Set by Match.
	Given string

	sees     *float64 // CPUs that the process believes it has, if known
	rule     *expr    // of the runtime: limit and host to CPUs
	size     *expr    // Formula
	fit      *expr    // limit, threads and widest to the size that fits; nil: by class
	forms    []pattern
	when     evidence
	examples []Example
	generic  bool // the name alone is no evidence
}

// IOThread reports whether the pool is made for I/O, so that application work on it holds up every connection it
// serves.
func (r Row) IOThread() bool { return r.Class == IO }

// Process is what is known of a process beside the names of its threads. All of it is optional, and all of it a
// stranger's choice: data to compare, never to print as it is.
type Process struct {
	TGID    int
	Comm    string   // of its first thread
	Exe     string   // path of the executable, as its own mount namespace has it
	Cmdline []string // arguments, the program's name first
	// Libraries are paths of files that it has mapped; nil: not known.
	Libraries []string
	// Go is the version of Go that built the executable, "" if that is not known to be a Go program.
	Go string
	// Holds are libraries known to be linked into the executable, such as "rayon".
	Holds []string
	// CPUsItSees is what the runtime was told to believe; nil: not known.
	CPUsItSees *float64
}

package threadpool

// Class is the purpose of a pool's threads, which decides how to size the pool.
type Class string

// The classes.
const (
	IO         Class = "io"         // must not block; few threads serve many connections
	App        Class = "app"        // work on the CPU
	Blocking   Class = "blocking"   // mostly off the CPU: sized by their waiting, not by CPUs
	Background Class = "background" // no request waits for it
	VM         Class = "vm"         // the runtime's own: collector, compiler, bookkeeping
)

// Row is the table's entry for one pool.
type Row struct {
	Key     string   // unique name of the row, such as "netty-nio"
	Names   []string // full thread names; {n} is a number, {s} any text, {program} the program's name
	Library string
	Class   Class
	// Helps is the key of the row whose threads' requests it works for, as a runtime's helpers do; "": none.
	Helps   string
	Runtime string // the runtime that turns a limit into CPUs: a key of the table's runtimes
	// Setting is the setting that sizes the pool; "": there is none. OtherSettings size it too.
	Setting       string
	OtherSettings []string
	// Least is the smallest value that the setting takes; 0: 1.
	Least int
	// Formula computes the default from n, the CPUs that the runtime believes it has; "": see Default.
	Formula string
	// Default describes a default that no formula can compute.
	Default string
	// Live says that a setting can change while the process runs, LiveHow by which means.
	Live    bool
	LiveHow string
	// Source is where the row comes from. Unverified says that it is general knowledge without a check.
	Source     string
	Unverified bool
	// Processes says that the pool is of processes, not of threads.
	Processes bool
	// Since and Until are the versions of the library or runtime with this name and default; "": no known
	// bound.
	Since, Until string

	// Because says why the row matches, such as "its name" or "libopenblas.so.0 is mapped". Match sets it.
	Because string
	// Also has the libraries of other rows that match as well as this one. Match sets it.
	Also []string
	// Given is a setting with its value on the process's command line, safe to print. Match sets it.
	Given string

	sees     *float64 // CPUs that the process believes it has; nil: unknown
	rule     *expr    // of the runtime: limit and host to CPUs
	size     *expr    // Formula
	fit      *expr    // threads that fit, from limit, threads and widest; nil: by class
	forms    []pattern
	when     evidence
	examples []example
	generic  bool // the name alone is no evidence
}

// IOThread reports whether the pool is made for I/O, so that application work on it delays every connection
// that it serves.
func (r Row) IOThread() bool { return r.Class == IO }

// Process has the known facts of a process beside the names of its threads. All of them are optional. The
// process chose all of them, so they are data to compare, and never safe to print as they are.
type Process struct {
	TGID    int
	Comm    string   // of its first thread
	Exe     string   // path of the executable in its own mount namespace
	Cmdline []string // arguments, the program's name first
	// Libraries has the paths of mapped files; nil: unknown.
	Libraries []string
	// Unnamed is the name of the file whose code most of the threads without a name of their own were started with, by their CPU
	// time; "": unknown, or there are none.
	Unnamed string
	// Go is the version of Go that built the executable; "": unknown, or no Go program.
	Go string
	// GoDebug are the settings of GODEBUG, "containermaxprocs=0,updatemaxprocs=0", of which the last counts: the defaults in the
	// executable, which are those of the language version in its go.mod where that is older than Go, its //go:debug lines, and the
	// variable; "": none.
	GoDebug string
	// Holds has the libraries known to be linked into the executable, such as "rayon".
	Holds []string
	// CPUsItSees are the CPU counts that its runtimes were told, by the runtime's key; one that is not in it: none, or unknown.
	CPUsItSees map[string]float64
	// Budget is what the project's library in it says that it has in force; nil: it says nothing.
	Budget *Budget
	// JVM is what a HotSpot JVM says of itself; nil: it is none, or says nothing.
	JVM *JVM
}

// JVM is what a HotSpot JVM says in its performance data. The process wrote it, so it is a claim.
type JVM struct {
	Version string // such as 17.0.15; "": it does not say
	// Options are those that it took, from its command line, variables and files. A word of one that has blanks is one for itself.
	Options []string
	// Processors is the CPU count that one of them gave it; nil: none did.
	Processors *float64
	// CompilerThreads are how many threads it compiles with at most; 0: it does not say.
	CompilerThreads int
	// Collector is G1, Parallel, Serial, Shenandoah or Z; "": another, or it does not say.
	Collector string
}

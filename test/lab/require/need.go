package require

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// Names of the needs, as they stand in UNTHROTTLE_MUST and in skip messages.
// CPUs carry a number there: "cpus=16".
const (
	needRoot     = "root"
	needV1       = "v1"
	needV2       = "v2"
	needCPUs     = "cpus"
	needSchedExt = "sched_ext"
	needBPF      = "bpf"
	needJDK      = "jdk"
	needCC       = "cc"
	needSpark    = "spark"
	needKernel   = "kernel"
	needSlow     = "slow"
	needCheckAll = "check-all"
	needTestAll  = "test-all"
)

// The environment variables that steer this package.
const (
	// EnvLab is "1" in the lab's guest.
	EnvLab = "UNTHROTTLE_LAB"
	// EnvMust lists the needs that this machine is known to meet.
	EnvMust = "UNTHROTTLE_MUST"
	// EnvSlow is how many times slower than the host's the guest's clock runs; unset at the host's pace.
	EnvSlow = "UNTHROTTLE_LAB_SLOW"
	// EnvPure is "1" where every test that states a need is left out.
	EnvPure = "UNTHROTTLE_PURE"
	// EnvCheckAll is "1" where `make check-all` does what `make test` leaves out.
	EnvCheckAll = "UNTHROTTLE_CHECK_ALL"
	// EnvAll is "1" in `make test-all`, which leaves nothing out.
	EnvAll = "UNTHROTTLE_ALL"
)

// need is one thing a test asks of the machine.
type need struct {
	name   string
	count  int    // 0 where the need is not counted
	runsIn string // "the lab", or "a host with X"
}

func (n need) String() string {
	if n.count == 0 {
		return n.name
	}
	return n.name + "=" + strconv.Itoa(n.count)
}

// message is the text a test is skipped or failed with. Its shape is read by
// SkipMessage.
func (n need) message(reason error) string {
	return fmt.Sprintf("needs %s: %s; runs in %s", n, oneLine(reason.Error()), n.runsIn)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// mustHave reports whether the list, as it stands in UNTHROTTLE_MUST, says
// that the machine meets n. "cpus" means any number of them, "cpus=16" up to
// sixteen. An unknown entry is an error: a misspelt one would never fail
// a test.
func mustHave(list string, n need) (bool, error) {
	found := false
	for _, entry := range strings.Split(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry == "" {
			continue
		}
		name, number, counted := strings.Cut(entry, "=")
		if !known(name) {
			return false, fmt.Errorf("%s: unknown need %q; known are %s", EnvMust, entry, strings.Join(needNames(), ", "))
		}
		have := n.count
		if counted {
			var err error
			if have, err = strconv.Atoi(number); err != nil {
				return false, fmt.Errorf("%s: %q: want a whole number after =", EnvMust, entry)
			}
		}
		if name == n.name && have >= n.count {
			found = true
		}
	}
	return found, nil
}

func needNames() []string {
	return []string{needRoot, needV1, needV2, needCPUs, needSchedExt, needBPF, needJDK, needCC, needSpark, needKernel,
		needSlow, needCheckAll, needTestAll}
}

func known(name string) bool {
	for _, n := range needNames() {
		if n == name {
			return true
		}
	}
	return false
}

// ask tries the need, and ends the test if the need is not met. This is the one
// place that leaves kernel experiments out of a short or pure run.
func (n need) ask(t testing.TB, try func() error) {
	t.Helper()
	if testing.Short() || os.Getenv(EnvPure) == "1" {
		t.Skipf("needs %s%s", n, leftOut)
	}
	if err := try(); err != nil {
		unmet(t, n, err)
	}
}

// unmet ends the test: skipped, or failed where the machine must have it.
func unmet(t testing.TB, n need, reason error) {
	t.Helper()
	must, err := mustHave(os.Getenv(EnvMust), n)
	switch {
	case err != nil:
		t.Fatal(err)
	case must:
		t.Fatalf("%s; and %s says that this machine has it", n.message(reason), EnvMust)
	default:
		t.Skip(n.message(reason))
	}
}

// SkipMessage takes apart a message of this package: the need ("cpus=16"), why
// it was not met, and where the test runs instead. ok is false for any other
// text.
func SkipMessage(text string) (needed, reason, runsIn string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "needs ")
	if !ok {
		return "", "", "", false
	}
	needed, rest, ok = strings.Cut(rest, ": ")
	if !ok {
		return "", "", "", false
	}
	name, _, _ := strings.Cut(needed, "=")
	i := strings.LastIndex(rest, "; runs in ")
	if i < 0 || !known(name) {
		return "", "", "", false
	}
	return needed, rest[:i], rest[i+len("; runs in "):], true
}

// leftOut ends the message of a test that ask has left out.
const leftOut = ", which -short and " + EnvPure + " leave out"

// IsLeftOut reports whether the text is the message of a test that was left out
// unlooked at, by -short or UNTHROTTLE_PURE.
func IsLeftOut(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "needs ") && strings.HasSuffix(text, leftOut)
}

// Must reports whether the list, in the form of UNTHROTTLE_MUST, holds the
// need of a skip message such as "cpus=16".
func Must(list, needed string) (bool, error) {
	name, number, counted := strings.Cut(needed, "=")
	n := need{name: name}
	if counted {
		var err error
		if n.count, err = strconv.Atoi(number); err != nil {
			return false, fmt.Errorf("need %q: want a whole number after =", needed)
		}
	}
	return mustHave(list, n)
}

// InLab reports whether the test runs in the lab's guest.
func InLab() bool { return os.Getenv(EnvLab) == "1" }

// All reports whether the run leaves nothing out: `make test-all`.
func All() bool { return os.Getenv(EnvAll) == "1" }

// Whole reports whether the run does what `make test` leaves out: in `make check-all`, and in `make test-all`.
func Whole() bool { return os.Getenv(EnvCheckAll) == "1" || All() }

// CheckAll says that `make test` leaves an experiment out, and why: it takes long, and is not the only one of its subject. `make check-all`
// has it, which continuous integration runs.
func CheckAll(t testing.TB, why string) {
	t.Helper()
	leaveOut(t, needCheckAll, why, Whole())
}

// leaveOut skips a test that only the make target of this name has, in every other run.
func leaveOut(t testing.TB, target, why string, has bool) {
	t.Helper()
	if why == "" {
		t.Fatalf("require: say why a run other than make %s can do without this test", target)
	}
	if !has {
		t.Skip(need{name: target, runsIn: "make " + target}.message(errors.New(why)))
	}
}

// Cases returns of how many cases a test computes: of the whole number in `make check-all`, of few elsewhere, which must be enough to
// fail for the same mistakes where these are not small.
func Cases(t testing.TB, whole, few int) int {
	t.Helper()
	if few < 1 || whole <= few {
		t.Fatalf("require.Cases: few are %d of %d; want 1 at least, and less than all", few, whole)
	}
	if Whole() {
		return whole
	}
	return few
}

// TestAll says that `make check-all` leaves a test out, and why: it takes long, and checks what other tests check in short, or
// what changes with a release alone. `make test-all` has it.
func TestAll(t testing.TB, why string) {
	t.Helper()
	leaveOut(t, needTestAll, why, All())
}

// Rounds returns how often a test that repeats something n times in `make test-all` does
// so here: n there on a host, else a tenth of it, at least once.
func Rounds(t testing.TB, n int) int {
	t.Helper()
	if n < 1 {
		t.Fatalf("require.Rounds: %d rounds; want at least 1", n)
	}
	if !All() || InLab() || testing.Short() {
		return max(1, n/10)
	}
	return n
}

package threadpool

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/unthrottle/unthrottle/internal/text"
)

func TestFold(t *testing.T) {
	for comm, want := range map[string]string{
		"http-worker-12":  "http-worker-*",
		"GC Thread#3":     "GC Thread#*",
		"GC Thread#11":    "GC Thread#*",
		"nioEven..up-2-1": "nioEven..up-*-*",
		"G1 Conc#0":       "G1 Conc#*",
		"C2 CompilerThre": "C2 CompilerThre",
		"C2 Comp..hread0": "C2 Comp..hread*",
		"XNIO-1 I/O-1":    "XNIO-* I/O-*",
		"qtp1424788681-3": "qtp*-*",
		"qtp1424..681-35": "qtp*..*-*",
		"http-nio-8080-e": "http-nio-*-e",
		"puma srv tp 001": "puma srv tp *",
		"io_thd_1":        "io_thd_*",
		"elastic..][T#3]": "elastic..][T#*]",
		"wrk:worker_0":    "wrk:worker_*",
		"worker7":         "worker*",
		"worker1234x":     "worker*x",
		"kworker/0:1-eve": "kworker/*:*-eve",
		"jbd2/sda1-8":     "jbd2/sda1-*",
		"req-3f2a9b":      "req-*",
		"deadbeef":        "deadbeef",
		"face123":         "face*",
		"load-1.25":       "load-*",
		"7zip":            "7zip",
		"python3":         "python3",
		"python3.11":      "python3.11",
		"finagle/netty4-": "finagle/netty4-*", // cut, the next would be a number or a word
		"pool-10-thread-": "pool-*-thread-*",
		"pool-1-thread-1": "pool-*-thread-*",
		"HTTP-Dispatcher": "HTTP-Dispatcher",
		"nginx":           "nginx",
		"42":              "*",
		"":                Unnamed,
		"*":               "*",
		"a\x1b[2J\nb":     `a\x1b[2J\nb`,
		"a\u202eb":        `a\u202eb`,
		"\xff\xfe3":       `\xff\xfe*`,
		"工作线程工":           "工作线程工",
		"x工作线程\xe5\xb7":   "x工作线程", // cut within a rune
		"x\xe5\xb7":       `x\xe5\xb7`,
	} {
		if got := Fold(comm); got != want {
			t.Errorf("%q: %q, want %q", comm, got, want)
		}
	}
	if got := Fold(strings.Repeat("ab", 1<<20)); utf8.RuneCountInString(got) != MaxName {
		t.Errorf("a name of 2 MiB: %d runes", utf8.RuneCountInString(got))
	}
}

// checkFolded is what holds for every name.
func checkFolded(t interface{ Fatalf(string, ...any) }, comm string) string {
	got := Fold(comm)
	if got == "" || utf8.RuneCountInString(got) > MaxName {
		t.Fatalf("%q: %q", comm, got)
	}
	if got != text.Sanitize(got, MaxName) {
		t.Fatalf("%q: %q is not safe to print", comm, got)
	}
	if again := Fold(comm); again != got {
		t.Fatalf("%q: %q, then %q", comm, got, again)
	}
	return got
}

func FuzzFold(f *testing.F) {
	for _, s := range []string{"GC Thread#11", "a\u202e\x1b\xff\x00", "qtp1424..681-35", "x工作线程\xe5\xb7", "1.2.3", "0123456789abcde"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, comm string) { checkFolded(t, comm) })
}

// TestFoldOnePool: whatever the number, threads of one pool get one name.
func TestFoldOnePool(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stem := rapid.StringMatching(`[a-zA-Z]{1,4}([-_ :/#.][a-zA-Z]{1,4})?`).Draw(t, "stem")
		separator := rapid.SampledFrom([]string{"-", "_", "#", " ", ":", "/", ""}).Draw(t, "separator")
		name := func(n int) string { return stem + separator + strconv.Itoa(n) }
		a, b := name(rapid.IntRange(0, 999).Draw(t, "a")), name(rapid.IntRange(0, 999).Draw(t, "b"))
		if isInterpreter(a) || isInterpreter(b) || Fold(a) == Fold(b) {
			return
		}
		t.Fatalf("%q: %q, %q: %q", a, Fold(a), b, Fold(b))
	})
}

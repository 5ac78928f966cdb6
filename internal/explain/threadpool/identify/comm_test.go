package identify

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/text"
)

// TestCommOfAnyBytes gives a thread hostile names and looks at it as at any other's.
func TestCommOfAnyBytes(t *testing.T) {
	id := make(chan int)
	rename := make(chan string)
	renamed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its name
		id <- unix.Gettid()
		for name := range rename {
			raw, err := unix.ByteSliceFromString(name)
			if err == nil {
				err = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&raw[0])), 0, 0, 0)
			}
			renamed <- err
		}
	}()
	tid := <-id
	defer close(rename)
	for name, folded := range map[string]string{
		"worker-17":             "worker-*",
		"\xff\xfe\x80bad":       `\xff\xfe\x80bad`,
		"a\nb\nc-3":             `a\nb\nc-*`,
		"\n":                    `\n`,
		"\x1b[2J\x1b[31mred":    `\x1b[2J\x1b[31mred`,
		"abc\u202e\u2066cba":    `abc\u202e\u2066cba`,
		"工作线程工作线程":              "工作线程工", // cut to 15 bytes
		"x工作线程工作线程":             "x工作线程", // and within a rune
		"a-much-longer-name-99": "a-much-longer-n",
		"":                      threadpool.Unnamed,
	} {
		rename <- name
		if err := <-renamed; err != nil {
			t.Fatal(err)
		}
		p, err := Look(tid)
		if err != nil {
			t.Fatal(err)
		}
		if want := name[:min(len(name), threadpool.CommBytes)]; p.Comm != want {
			t.Errorf("%q: comm %q", name, p.Comm)
		}
		got := threadpool.Fold(p.Comm)
		if got != folded {
			t.Errorf("%q: %q, want %q", name, got, folded)
		}
		if got != text.Sanitize(got, threadpool.MaxName) {
			t.Errorf("%q: %q is not safe to print", name, got)
		}
		// The kernel's status file, where the parser meets the same name.
		text, err := os.ReadFile("/proc/self/task/" + strconv.Itoa(tid) + "/status")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := parseStatus(text); err != nil || s.inner != uint32(tid) {
			t.Errorf("%q: status of %d, %v: %q", name, s.inner, err, strings.SplitN(string(text), "Umask", 2)[0])
		}
	}
}

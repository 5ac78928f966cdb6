package agent

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/test/lab/require"
)

const nobody = 65534

// getAs asks on a connection that a user made: the kernel tells the other end who that was.
func getAs(t *testing.T, uid int, network, address, path string) (code int, body string) {
	t.Helper()
	type dialled struct {
		conn net.Conn
		err  error
	}
	made := make(chan dialled, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)); e != 0 {
			made <- dialled{nil, e}
			return
		}
		conn, err := (&net.Dialer{}).DialContext(context.Background(), network, address)
		made <- dialled{conn, err}
	}()
	d := <-made
	if d.err != nil {
		t.Fatal(d.err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return d.conn, nil }}}
	return getBy(t, &client, "http://agent"+path)
}

// given are the paths of a table in docs/howto/security.md: what the agent's address gives to each user of the host.
func given(t *testing.T) (paths []string) {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "docs", "howto", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if row, ok := strings.CutPrefix(lines.Text(), "| `/"); ok {
			paths = append(paths, "/"+row[:strings.Index(row, "`")])
		}
	}
	return paths
}

// TestNobodyReadsNoRecordings: the address gives each user of the host what the page of security says, and nothing else; the
// socket gives nothing to a user who is not named.
func TestNobodyReadsNoRecordings(t *testing.T) {
	require.Root(t)
	a, besideSocket := pageAgent(t, pageRules, persist), pageAgent(t, pageRules, persist)
	kept, err := a.keptRecordings()
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	file := "/recordings/" + kept[0].File
	address := served(t, a)

	_, index := getAs(t, nobody, "tcp", address, "/")
	var linked []string
	for _, m := range regexp.MustCompile(`href="([^"]+)"`).FindAllStringSubmatch(index, -1) {
		linked = append(linked, m[1])
	}
	listed := given(t)
	slices.Sort(listed)
	if slices.Sort(linked); !slices.Equal(listed, linked) {
		t.Errorf("docs/howto/security.md says that each user of the host reads %v, the agent has %v", listed, linked)
	}
	for _, path := range linked {
		if code, body := getAs(t, nobody, "tcp", address, path); code != http.StatusOK || strings.Contains(body, "http-worker") {
			t.Errorf("%s as nobody: %d, or with a thread's name: %.200s", path, code, body)
		}
	}
	for _, path := range []string{"/recordings", file} {
		for _, uid := range []int{0, nobody} { // an address does not tell who asks
			if code, body := getAs(t, uid, "tcp", address, path); code != http.StatusForbidden || strings.Contains(body, "cart") {
				t.Errorf("%s as uid %d: %d %.200s", path, uid, code, body)
			}
		}
	}

	a = besideSocket
	a.Answers, a.AnswersUID = filepath.Join(reachable(t), "agent.sock"), 65532
	address = served(t, a)
	serveSocket(t, a)
	for _, path := range []string{"/containers", "/policy", "/status", "/recordings", file} {
		for uid, want := range map[int]int{0: http.StatusOK, 65532: http.StatusOK, nobody: http.StatusForbidden} {
			code, body := getAs(t, uid, "unix", a.Answers, path)
			if code != want || want != http.StatusOK && strings.Contains(body, "cart") {
				t.Errorf("%s on the socket as uid %d: %d, want %d: %.200s", path, uid, code, want, body)
			}
		}
		if path == "/policy" {
			continue
		}
		if code, body := getAs(t, 0, "tcp", address, path); code != http.StatusForbidden || strings.Contains(body, "cart") {
			t.Errorf("%s beside the socket: %d %.200s", path, code, body)
		}
	}
}

// reachable is a folder that every user reaches.
func reachable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// served is the address where an agent answers.
func served(t *testing.T, a *agent) (address string) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(&a.totals)
	whileTested(t, func(ctx context.Context) error {
		return serve(ctx, l, &a.spent, pages{registry, a.report, func() error { return nil }, func() error { return nil }, a}, nil)
	})
	return l.Addr().String()
}

// serveSocket lets an agent answer on its socket, and returns who asks there as this process's user.
func serveSocket(t *testing.T, a *agent) *http.Client {
	t.Helper()
	a.Listeners = &Listeners{}
	t.Cleanup(func() { _ = a.Listeners.Close() })
	l, err := a.Listeners.unix(t.Context(), a.Answers) // here, so that it is there when this returns
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	whileTested(t, a.serveAnswers)
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", a.Answers)
		}}}
}

// whileTested runs a part of an agent until the test ends.
func whileTested(t *testing.T, part func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- part(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ends with %v", err)
		}
	})
}

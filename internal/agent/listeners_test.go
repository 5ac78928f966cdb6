package agent

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// TestRequestsWaitOverAReload: who connects between two runs of an agent is answered by the second one.
func TestRequestsWaitOverAReload(t *testing.T) {
	var l Listeners
	t.Cleanup(func() { l.Close() })
	socket := filepath.Join(t.TempDir(), "agent.sock")
	for network, run := range map[string]func() (net.Listener, error){
		"tcp":  func() (net.Listener, error) { return l.tcp(t.Context(), "127.0.0.1:0") },
		"unix": func() (net.Listener, error) { return l.unix(t.Context(), socket) },
	} {
		first, err := run()
		if err != nil {
			t.Fatal(err)
		}
		at := first.Addr().String()
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		between, err := net.Dial(network, at)
		if err != nil {
			t.Fatalf("between two runs: %v", err)
		}
		defer between.Close()
		second, err := run()
		if err != nil || second.Addr().String() != at {
			t.Fatalf("the second run listens on %v, not %s: %v", second, at, err)
		}
		if got, err := second.Accept(); err != nil || got.Close() != nil || second.Close() != nil {
			t.Errorf("%s: %v", network, err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("unix", socket); err == nil {
		t.Error("the socket answers after the end")
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is there after the end: %v", err)
	}
}

package slo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		name, command string
		want          []string
		wantErr       string
	}{
		{"plain", "probe --last 10s", []string{"probe", "--last", "10s"}, ""},
		{"quoted", `probe "a b" 'c d'`, []string{"probe", "a b", "c d"}, ""},
		{"variables stay text", "probe $HOME", []string{"probe", "$HOME"}, ""},
		{"empty", "  ", nil, "is empty"},
		{"pipe", "probe | awk 1", nil, "needs a shell"},
		{"second command", "probe; rm x", nil, "needs a shell"},
		{"backquote", "probe `id`", []string{"probe", "`id`"}, ""},
		{"open quote", "probe 'a", nil, "slo command"},
		{"too many", strings.Repeat("x ", 300), nil, "300 words"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Split(tc.command)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("error %v, want one with %q", err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRunGivesOutput(t *testing.T) {
	out, err := Run(t.Context(), `printf '1.5\n2\n'`)
	if err != nil || string(out) != "1.5\n2\n" {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestRunNamesFailures(t *testing.T) {
	for command, want := range map[string]string{
		"sh -c 'sleep 60 & echo 1'":             "still held its output",
		"/no/such/program":                      "no such file",
		"sh -c 'echo one >&2; exit 7'":          `exit status 7: "one"`,
		"sh -c 'echo \"\x1b[31m\" >&2; exit 1'": `\x1b[31m`,
	} {
		_, err := Run(t.Context(), command)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", command, err, want)
		}
	}
}

// The limit must reach grandchildren: one that outlives its parent would keep
// the pipe open and the command running.
func TestRunEndsTheWholeGroup(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "pid")
	_, err := run(t.Context(), "sh -c 'sleep 60 & echo $! > "+mark+"; wait'", 300*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "still running after") {
		t.Fatalf("error %v, want the limit", err)
	}
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(text)) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the grandchild is still there")
}

func TestRunBoundsOutput(t *testing.T) {
	_, err := Run(t.Context(), "yes 12345")
	if err == nil || !strings.Contains(err.Error(), "printed more than 8 MB") {
		t.Fatalf("error %v, want the output bound", err)
	}
}

func TestRunStopsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, "sleep 60"); err != context.Canceled {
		t.Fatalf("error %v, want %v", err, context.Canceled)
	}
}

func TestCallingUser(t *testing.T) {
	env := func(uid, gid string) func(string) string {
		return func(name string) string { return map[string]string{"SUDO_UID": uid, "SUDO_GID": gid}[name] }
	}
	for _, tc := range []struct {
		name     string
		uid      int
		uidEnv   string
		gidEnv   string
		wantUser *syscall.Credential
	}{
		{"sudo", 0, "1000", "1001", &syscall.Credential{Uid: 1000, Gid: 1001}},
		{"root itself", 0, "", "", nil},
		{"sudo by root", 0, "0", "0", nil},
		{"ordinary user with a forged variable", 1000, "1001", "1001", nil},
		{"garbage", 0, "-1", "x", nil},
		{"no group", 0, "1000", "", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.wantUser, callingUser(tc.uid, env(tc.uidEnv, tc.gidEnv)), cmp.AllowUnexported(syscall.Credential{})); d != "" {
				t.Error(d)
			}
		})
	}
}

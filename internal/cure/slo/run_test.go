package slo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unthrottle/unthrottle/test/lab/require"
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
	require.Kernel(t)
	out, err := Run(t.Context(), `printf '1.5\n2\n'`, time.Time{})
	if err != nil || string(out) != "1.5\n2\n" {
		t.Fatalf("got %q, %v", out, err)
	}
}

func TestRunNamesFailures(t *testing.T) {
	require.Kernel(t)
	for command, want := range map[string]string{
		"sh -c 'sleep 60 & echo 1'":             "still held its output",
		"/no/such/program":                      "no such file",
		"sh -c 'echo one >&2; exit 7'":          `exit status 7: "one"`,
		"sh -c 'echo \"\x1b[31m\" >&2; exit 1'": `\x1b[31m`,
	} {
		_, err := Run(t.Context(), command, time.Time{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", command, err, want)
		}
	}
}

// The limit must reach grandchildren: one that outlives its parent would keep
// the pipe open and the command running.
func TestRunEndsTheWholeGroup(t *testing.T) {
	require.Kernel(t)
	mark := filepath.Join(t.TempDir(), "pid")
	_, err := run(t.Context(), "sh -c 'sleep 60 & echo $! > "+mark+"; wait'", time.Time{}, 3*time.Second)
	if err == nil || !strings.Contains(err.Error(), "still running after") {
		t.Fatalf("error %v, want the limit", err)
	}
	text, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, string(text))
}

func TestRunBoundsOutput(t *testing.T) {
	require.Kernel(t)
	_, err := Run(t.Context(), "yes 12345", time.Time{})
	if err == nil || !strings.Contains(err.Error(), "printed more than 8 MB") {
		t.Fatalf("error %v, want the output bound", err)
	}
}

func TestRunStopsWithContext(t *testing.T) {
	require.Kernel(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, "sleep 60", time.Time{}); err != context.Canceled {
		t.Fatalf("error %v, want %v", err, context.Canceled)
	}
}

func TestCallingUser(t *testing.T) {
	web := account{name: "web", home: "/home/web", groups: []uint32{1001, 27}}
	callerWith := func(uid, gid uint32, groups []uint32, home, name string) caller {
		return caller{&syscall.Credential{Uid: uid, Gid: gid, Groups: groups}, []string{"HOME=" + home, "USER=" + name, "LOGNAME=" + name}}
	}
	for _, tc := range []struct {
		name   string
		uid    int
		uidEnv string
		gidEnv string
		want   caller
	}{
		{"sudo", 0, "1000", "1001", callerWith(1000, 1001, web.groups, web.home, web.name)},
		{"sudo by a user that the host does not know", 0, "1234", "1001", callerWith(1234, 1001, nil, "/", "from-sudo")},
		{"root itself", 0, "", "", caller{}},
		{"sudo by root", 0, "0", "0", caller{}},
		{"ordinary user with a forged variable", 1000, "1001", "1001", caller{}},
		{"garbage", 0, "-1", "x", caller{}},
		{"no group", 0, "1000", "", caller{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := map[string]string{"SUDO_UID": tc.uidEnv, "SUDO_GID": tc.gidEnv, "SUDO_USER": "from-sudo"}
			got := callingUser(tc.uid, func(name string) string { return env[name] }, func(uid string) (account, error) {
				if uid != "1000" {
					return account{}, errors.New("unknown")
				}
				return web, nil
			})
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(caller{}, syscall.Credential{})); d != "" {
				t.Error(d)
			}
		})
	}
}

// Under sudo the source has its user's home and groups, not root's.
func TestRunAsTheCallingUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	nobody, err := lookUp("65534")
	if err != nil {
		t.Skipf("there is no user 65534: %v", err)
	}
	t.Setenv("SUDO_UID", "65534")
	t.Setenv("SUDO_GID", "65534")
	out, err := Run(t.Context(), `sh -c 'id -u; id -G; echo $HOME'`, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 3 || lines[0] != "65534" || len(strings.Fields(lines[1])) != len(nobody.groups) || lines[2] != nobody.home {
		t.Errorf("uid, groups, home %q, want 65534, %v, %q", lines, nobody.groups, nobody.home)
	}
}

// What a source leaves behind is killed, and only while its leader is not
// reaped, since the group's id may be another's afterwards.
func TestTheGroupIsKilledBeforeItsLeaderIsReaped(t *testing.T) {
	require.Kernel(t)
	for _, script := range []string{
		"sleep 60 >/dev/null 2>&1 & echo $!",
		"sleep 60 & echo $!",
		"sleep 60 >/dev/null 2>&1 & echo $!; exit 3",
		"sleep 60 >/dev/null 2>&1 & echo $!; kill -9 $$",
	} {
		t.Run(script, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", script)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			var out, complaints bytes.Buffer
			kills := 0
			held, err := runGroup(t.Context(), cmd, &out, &complaints, func(group int) {
				kills++
				if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", group)); err != nil ||
					group != cmd.Process.Pid || cmd.ProcessState != nil ||
					!strings.Contains(string(stat), fmt.Sprintf(") Z %d ", os.Getpid())) {
					t.Errorf("group %d is signalled, its leader is %q, %v", group, stat, err)
				}
				if err := syscall.Kill(-group, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			})
			if failed := strings.Contains(script, "exit") || strings.Contains(script, "kill"); (err != nil) != failed {
				t.Errorf("error %v, want one: %v", err, failed)
			}
			if want := strings.HasPrefix(script, "sleep 60 &"); held != want {
				t.Errorf("held %v, want %v", held, want)
			}
			if kills != 1 {
				t.Errorf("%d signals, want 1", kills)
			}
			awaitEnd(t, out.String())
		})
	}
}

// awaitEnd waits until a process is gone, or a zombie that its new parent has yet to reap.
func awaitEnd(t *testing.T, pid string) {
	t.Helper()
	for range 500 {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(pid) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %q is still there", pid)
}

// The command learns since when latencies are wanted, by its environment and in
// its words: the whole second that is not before it.
func TestSince(t *testing.T) {
	at := time.Date(2026, 11, 23, 1, 2, 3, 400_000_000, time.FixedZone("", 3600))
	for since, want := range map[time.Time]string{at: "2026-11-23T00:02:04Z", at.Truncate(time.Second): "2026-11-23T00:02:03Z"} {
		out, err := Run(t.Context(), `sh -c 'echo "$0 $UNTHROTTLE_SINCE"' 'x={since},{since}'`, since)
		if got := string(out); err != nil || got != fmt.Sprintf("x=%s,%s %s\n", want, want, want) {
			t.Errorf("%v: %q, %v", since, got, err)
		}
	}
}

package identify

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/kernel/procfs"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// speaker runs sleep with a file that it names, and returns the file's first two lines.
func speaker(t *testing.T, file string) (pid int, head string) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env = []string{budgetVariable + file}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	pid = cmd.Process.Pid
	// The kernel tells the parent that the program runs before its variables can be read.
	for environ := ""; !strings.Contains(environ, budgetVariable); {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil {
			t.Fatal(err)
		}
		environ = string(text)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	started, err := procfs.StartTime(string(stat))
	if err != nil {
		t.Fatal(err)
	}
	return pid, fmt.Sprintf("%s\nprocess %d %d\n", budgetFirstLine, pid, started)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBudgetOfAProcess(t *testing.T) {
	file := filepath.Join(t.TempDir(), "budget")
	pid, head := speaker(t, file)
	if _, err := Budget(pid); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
	write(t, file, head+"limit_cpus 1.5\npaced true\npermits app 2\npermits io 8\npermits background 1\n")
	said, err := Budget(pid)
	if err != nil || said == nil || *said.LimitCPUs != 1.5 || !said.Paced || said.Permits["app"] != 2 ||
		said.Permits["io"] != 8 || said.Names != nil {
		t.Fatalf("%+v, %v", said, err)
	}
	tid := strconv.Itoa(pid)
	write(t, file, head+"class app "+tid+"\n"+tid+" http-nio-8080-exec-1\n1 init\n")
	said, err = Budget(pid)
	if err != nil || said.LimitCPUs != nil || said.Paced || len(said.Names) != 1 ||
		said.Names[uint32(pid)] != "http-nio-8080-exec-1" || said.Classes[uint32(pid)] != "app" {
		t.Fatalf("%+v, %v", said, err)
	}
	if said, err := Budget(os.Getpid()); said != nil || err != nil {
		t.Errorf("a process that names none: %+v, %v", said, err)
	}
}

// What is not the process's own plain file, or that of another process, is not read.
func TestBudgetOfHostileProcesses(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "budget")
	pid, head := speaker(t, file)
	refused := func(what, want string) {
		t.Helper()
		said, err := Budget(pid)
		if said != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v, want %q", what, said, err, want)
		}
		os.Remove(file)
	}
	secret := filepath.Join(folder, "secret")
	write(t, secret, head)
	os.Symlink(secret, file)
	refused("a link", "no plain file")
	if err := unix.Mkfifo(file, 0o666); err != nil {
		t.Fatal(err)
	}
	refused("a FIFO", "no plain file")
	os.Mkdir(file, 0o755)
	refused("a folder", "no plain file")
	write(t, file, head)
	os.Truncate(file, maxBudget+1)
	refused("a large file", "more than")
	write(t, file, "root:x:0:0\n")
	refused("another file", "its first line")
	write(t, file, strings.Replace(head, "process "+strconv.Itoa(pid), "process 1", 1))
	refused("of another number", "another process")
	write(t, file, strings.TrimSuffix(head, "\n")+"1\n")
	refused("of an earlier process", "another process")
	write(t, file, head+"4 x\n")
	refused("of threads of others", "is one of its own")
}

func TestBudgetOfAnotherUser(t *testing.T) {
	require.Root(t)
	file := filepath.Join(t.TempDir(), "budget")
	pid, head := speaker(t, file)
	write(t, file, head)
	if err := os.Chown(file, otherUser, otherGroup); err != nil {
		t.Fatal(err)
	}
	if said, err := Budget(pid); said != nil || err == nil || !strings.Contains(err.Error(), "no plain file of user 0") {
		t.Errorf("%+v, %v", said, err)
	}
}

func TestBudgetFile(t *testing.T) {
	for _, c := range []struct {
		args, env string
		want      string
	}{
		{"app", "A=b|UNTHROTTLE_BUDGET_FILE=/run/b", "/run/b"},
		{"app", "UNTHROTTLE_BUDGET_FILE=b", ""},
		{"app", "UNTHROTTLE_BUDGET_FILE=", ""},
		{"java|-javaagent:/x.jar=tomcat=8,threads=/t/f|-jar|a", "", "/t/f"},
		{"java|-javaagent:/x.jar", "", ""},
		{"java|-javaagent:/x.jar=threads=f", "", ""},
		{"java|-javaagent:/other.jar=a=b|-javaagent:/x.jar=threads=/t/f", "", "/t/f"},
		{"java", "JAVA_TOOL_OPTIONS=-Xmx1g -javaagent:/x.jar=threads=/t/f", "/t/f"},
		{"java|threads=/t/f", "", ""},
	} {
		if got := budgetFile(strings.Split(c.args, "|"), strings.Split(c.env, "|")); got != c.want {
			t.Errorf("%q, %q: %q, want %q", c.args, c.env, got, c.want)
		}
	}
}

func TestParseBudget(t *testing.T) {
	head := budgetFirstLine + "\nprocess 7 99\n"
	b, err := parseBudget([]byte(head + "limit_cpus NaN\nlimit_cpus -1\nlimit_cpus 1e99\npaced yes\npermits app " +
		"-1\npermits root 4\npermits io x\n" +
		"class root 8\nclass app x\nclass app 0\n8 a \x1b[2J b\n9\n\nfuture 1\n10 cut"))
	if err != nil || b.LimitCPUs != nil || b.Paced || len(b.Permits) != 0 || len(b.threads) != 2 ||
		b.threads[8].name != "a \x1b[2J b" || b.threads[9] != (saidThread{}) {
		t.Errorf("%+v, %v", b, err)
	}
	for _, wrong := range []string{"", "x", budgetFirstLine, budgetFirstLine + "\nprocess x 1\n", budgetFirstLine +
		"\nprocess 1\n", head + "process 1 x\n"} {
		if b, err := parseBudget([]byte(wrong)); err == nil {
			t.Errorf("%q: %+v", wrong, b)
		}
	}
	var many bytes.Buffer
	many.WriteString(head)
	for i := range maxDumpThreads + 10 {
		fmt.Fprintf(&many, "%d t\n", i+1)
	}
	if b, _ := parseBudget(many.Bytes()); len(b.threads) != maxDumpThreads {
		t.Errorf("%d threads", len(b.threads))
	}
}

func FuzzParseBudget(f *testing.F) {
	f.Add([]byte(budgetFirstLine + "\nprocess 7 99\nlimit_cpus 1.5\npaced true\npermits app 2\nclass app 8\n8 a b\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := parseBudget(text)
		if err != nil {
			return
		}
		if b.pid == 0 || len(b.Permits) > 3 || b.LimitCPUs != nil && !(*b.LimitCPUs > 0 && *b.LimitCPUs <= maxBudgetCPUs) {
			t.Fatalf("%+v", b)
		}
		for tid, thread := range b.threads {
			if tid == 0 || len(thread.name) > maxThreadName || strings.Contains(thread.name, "\n") {
				t.Fatalf("%d %+v", tid, thread)
			}
		}
	})
}

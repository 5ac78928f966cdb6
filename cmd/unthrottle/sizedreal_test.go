package main

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unthrottle/unthrottle/internal/explain/threadpool"
	"github.com/unthrottle/unthrottle/internal/kernel/cgroup"
	"github.com/unthrottle/unthrottle/internal/load/cgrouptest"
	"github.com/unthrottle/unthrottle/internal/runtimes"
	"github.com/unthrottle/unthrottle/internal/runtimes/here"
	"github.com/unthrottle/unthrottle/test/lab/require"
)

// realRuntime is a program that prints what its runtime decided as "figure=n ..." and then waits for the end of its input.
type realRuntime struct {
	key string // of the runtime in the data file
	// make returns the program's command line. An error says what this machine lacks.
	make func(t *testing.T, dir string) ([]string, error)
	// deaf says that the program does not read the variable, so that its figure is the runtime's own with it as well.
	deaf bool
	// unread are figures that the data file has and the program cannot say.
	unread []string
	// asked is the line of a program that prints none.
	asked func(t *testing.T, pid int) string
}

var realRuntimes = map[string]realRuntime{
	"go": {key: "go", make: func(t *testing.T, dir string) ([]string, error) {
		return built(dir, "go", "build", "-o", "{}", "./testdata/runtimes/gofigures")
	}},
	"openmp": {key: "openmp", make: func(t *testing.T, dir string) ([]string, error) {
		return built(dir, "gcc", "-fopenmp", "-o", "{}", "testdata/runtimes/figures.c")
	}},
	"rust": {key: "rust", deaf: true, unread: []string{"tokio_workers", "rayon_threads"},
		make: func(t *testing.T, dir string) ([]string, error) {
			return built(dir, "rustc", "-o", "{}", "testdata/runtimes/figures.rs")
		}},
	"tokio and rayon": {key: "rust", make: func(t *testing.T, dir string) ([]string, error) {
		if _, err := built(dir, "cargo", "build", "--release", "--quiet", "--locked", "--manifest-path",
			"testdata/runtimes/rustfigures/Cargo.toml", "--target-dir", dir); err != nil {
			return nil, err
		}
		return []string{filepath.Join(dir, "release", "program")}, nil
	}},
	"openblas": {key: "openblas", make: func(t *testing.T, dir string) ([]string, error) {
		command, err := built(dir, "gcc", "-o", "{}", "testdata/runtimes/openblas.c", "-ldl")
		if err == nil && exec.Command(command[0]).Run() != nil {
			err = errors.New("libopenblas.so.0 is missing: apt-get install libopenblas0-pthread")
		}
		return command, err
	}},
	"node": {key: "libuv", make: func(t *testing.T, dir string) ([]string, error) {
		return found("node", "testdata/runtimes/figures.js")
	}},
	"python": {key: "python", make: func(t *testing.T, dir string) ([]string, error) {
		return pythonOf(func(minor int) bool { return minor >= 13 }, "3.13 or newer")
	}},
	"python before 3.13": {key: "python", deaf: true, make: func(t *testing.T, dir string) ([]string, error) {
		return pythonOf(func(minor int) bool { return minor < 13 }, "before 3.13")
	}},
	"erlang": {key: "erlang", make: func(t *testing.T, dir string) ([]string, error) {
		if _, err := exec.LookPath("erl"); err != nil {
			return nil, err
		}
		// OTP 25 finds the limit only where mountinfo has an optional field, such as shared:1.
		return found("unshare", "--mount", "--propagation", "shared", "erl", "-noshell", "-noinput", "-eval",
			`io:format("schedulers=~b dirty_cpu_schedulers=~b~n", `+
				`[erlang:system_info(schedulers_online), erlang:system_info(dirty_cpu_schedulers_online)]).`)
	}},
	"netty and finagle": {key: "jvm", make: func(t *testing.T, dir string) ([]string, error) { return librariesOf(dir) }},
	"nginx":             {key: "nginx", deaf: true, make: nginxOf, asked: workersOf},
}

// madeRuntimes are the commands of programs that were made already, by name.
var madeRuntimes struct {
	sync.Mutex
	commands map[string][]string
	err      map[string]error
}

// command makes a program, once, and returns its command. It skips the test where the host has not what that takes.
func (r realRuntime) command(t *testing.T, name string) []string {
	t.Helper()
	madeRuntimes.Lock()
	defer madeRuntimes.Unlock()
	if madeRuntimes.commands == nil {
		madeRuntimes.commands, madeRuntimes.err = map[string][]string{}, map[string]error{}
	}
	err, made := madeRuntimes.err[name]
	if !made {
		top, dirErr := buildDir()
		dir := filepath.Join(top, strings.ReplaceAll(name, " ", "-"))
		if err := errors.Join(dirErr, os.Mkdir(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		madeRuntimes.commands[name], err = r.make(t, dir)
		madeRuntimes.err[name] = err
	}
	if err != nil {
		t.Skipf("needs %s: %v; runs in a host with it", r.key, err)
	}
	return slices.Clone(madeRuntimes.commands[name])
}

// javaOf is a JVM's word of its figures.
func javaOf(java string) realRuntime {
	unread := []string{"netty_threads", "finagle_threads"}
	return realRuntime{key: "jvm", unread: unread, make: func(t *testing.T, dir string) ([]string, error) {
		if _, err := built(dir, "javac", "--release", "17", "-d", "{}", "testdata/runtimes/Figures.java"); err != nil {
			return nil, err
		}
		return []string{java, "-Xmx32m", "-XX:TieredStopAtLevel=4", "-cp", filepath.Join(dir, "program"), "Figures"}, nil
	}}
}

// librariesOf is a JVM's word of the pools that its libraries made. Tomcat's is that of a program with the argument "tomcat".
func librariesOf(dir string) ([]string, error) {
	const sources = "testdata/runtimes/"
	list := filepath.Join(dir, "classpath")
	if _, err := built(dir, "mvn", "-B", "-ntp", "-q", "-f", sources+"libraries/pom.xml", "dependency:build-classpath",
		"-Dmdep.outputFile="+list); err != nil {
		return nil, err
	}
	jars, err := os.ReadFile(list)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "program") + ":" + strings.TrimSpace(string(jars))
	if _, err := built(dir, "javac", "--release", "17", "-cp", path, "-d", "{}", sources+"Figures.java",
		sources+"libraries/Libraries.java"); err != nil {
		return nil, err
	}
	return []string{"java", "-Xmx64m", "-cp", path, "Libraries"}, nil
}

// TestSizedTomcatForReal starts Spring Boot with Tomcat under `sized`: without the flag it decides by itself, with it it has as many
// threads as were asked for each CPU, and what the user set stays, in each spelling.
func TestSizedTomcatForReal(t *testing.T) {
	cgrouptest.New(t)
	if require.InLab() {
		t.Skip("needs Maven's repository, which the guest has not; runs in a host with it")
	}
	r := realRuntimes["netty and finagle"]
	for name, c := range map[string]struct {
		flags, env, options []string
		want                int
	}{
		"without":         {want: 200},
		"asked":           {flags: []string{"--tomcat", "8"}, want: 4}, // of half a CPU
		"few":             {flags: []string{"--tomcat", "1"}, want: 1},
		"user's variable": {flags: []string{"--tomcat", "8"}, env: []string{"SERVER_TOMCAT_THREADS_MAX=7"}, want: 7},
		"user's property": {flags: []string{"--tomcat", "8"}, env: []string{"JDK_JAVA_OPTIONS=-Dserver.tomcat.threads.max=9"}, want: 9},
		"user's argument": {flags: []string{"--tomcat", "8"}, env: []string{"SERVER_TOMCAT_THREADS_MAX=7"},
			options: []string{"--server.tomcat.threads.max=11"}, want: 11},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, command := cgrouptest.New(t), append(r.command(t, "netty and finagle"), append([]string{"tomcat"}, c.options...)...)
			path := tr.Make("tomcat")
			tr.Limit(path, 0.5)
			s := &startedRuntime{realRuntime: r, path: path, limit: 0.5, sized: true, env: c.env, flags: c.flags}
			s.start(t, tr, command)
			if says, _, _ := s.figures(t); says["tomcat_threads"] != c.want {
				t.Errorf("%v, want %d", says, c.want)
			}
		})
	}
}

// TestSizedForReal starts real programs of the runtimes of the data file, as they are and under `sized`, and compares what each
// runtime says with its row and with what `runtimes` reads.
func TestSizedForReal(t *testing.T) {
	require.CheckAll(t, "it starts each runtime of this host four times; internal/runtimes has what they decide")
	cgrouptest.New(t)
	if require.InLab() {
		t.Skip("needs v1: each runtime starts eight times, for which the guest has not the CPU time; runs in a host with cgroup v1")
	}
	all := maps.Clone(realRuntimes)
	for _, java := range require.JDK(t) {
		all["java of "+filepath.Base(filepath.Dir(filepath.Dir(java)))] = javaOf(java)
	}
	for _, setting := range threadpool.Known().Settings() {
		if !slices.ContainsFunc(slices.Collect(maps.Values(all)), func(r realRuntime) bool { return r.key == setting.Of }) {
			all[setting.Of] = realRuntime{key: setting.Of, make: func(*testing.T, string) ([]string, error) {
				return nil, errors.New("no program of it is here")
			}}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all[name].check(t, name)
		})
	}
}

func (r realRuntime) check(t *testing.T, name string) {
	command, tr := r.command(t, name), cgrouptest.New(t)
	limits := []float64{0.5, 1.5}
	if require.All() {
		limits = []float64{0.5, 1, 1.5, 4}
	}
	var started []*startedRuntime
	for _, limit := range limits {
		for _, sized := range []bool{false, true} {
			path := tr.Make(fmt.Sprintf("%v-%t", limit, sized))
			tr.Limit(path, limit)
			started = append(started, &startedRuntime{realRuntime: r, path: path, limit: limit, sized: sized})
			started[len(started)-1].start(t, tr, command)
		}
	}
	for _, s := range started {
		s.check(t)
	}
}

// startedRuntime is a program that runs in a cgroup of its own.
type startedRuntime struct {
	realRuntime
	path  string
	limit float64
	sized bool
	env   []string // more of it
	flags []string // of sized
	pid   int
	out   *bufio.Reader
}

func (s *startedRuntime) start(t *testing.T, tr *cgrouptest.Tree, command []string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if s.sized {
		command = slices.Concat([]string{exe, "sized"}, s.flags, []string{"--"}, command)
	}
	cmd := exec.Command("sh", append([]string{"-c", `read _ && exec "$@"`, "sh"}, command...)...) // it waits until it is in its cgroup
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "GOMAXPROCS=") }), envMain+"=1")
	cmd.Env = append(cmd.Env, s.env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.out = bufio.NewReader(stdout)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt) // nginx ends its workers
		stdin.Close()
		time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
	})
	for _, controller := range cgroup.Controllers() {
		if _, ok := tr.Host.Version(controller); ok {
			if err := tr.Host.Attach(controller, s.path, cmd.Process.Pid); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := fmt.Fprintln(stdin); err != nil {
		t.Fatal(err)
	}
}

// figures are what the program says, and what `runtimes` says of it. started is false if it ended without a word of its own.
func (s *startedRuntime) figures(t *testing.T) (says map[string]int, decision runtimes.Decision, started bool) {
	t.Helper()
	line, err := "", error(nil)
	if s.asked != nil {
		line = s.asked(t, s.pid)
	} else if line, err = s.out.ReadString('\n'); err != nil || !strings.Contains(line, "=") || strings.Contains(line, "VM option") {
		t.Logf("%s: %q, %v", s.path, line, err)
		return nil, decision, false
	}
	says = map[string]int{}
	for _, word := range strings.Fields(line) {
		figure, value, _ := strings.Cut(word, "=")
		if says[figure], err = strconv.Atoi(value); err != nil {
			t.Fatalf("%s: %q: %v", s.path, line, err)
		}
	}
	d, err := runtimesOf(s.path)
	if err != nil {
		t.Fatal(err)
	}
	runtime := runtimeNamed(s.key)
	i := slices.IndexFunc(d.Processes, func(p runtimes.Decision) bool { return p.Runtime == runtime })
	if i < 0 || len(d.Notes) > 0 {
		t.Fatalf("%s: no %s in %+v", s.path, runtime, d)
	}
	return says, d.Processes[i], true
}

// check compares three sources: the program's word, what `runtimes` says of it, and the row of the data file.
func (s *startedRuntime) check(t *testing.T) {
	t.Helper()
	says, decision, started := s.figures(t)
	if !started {
		t.Fatalf("%s: it did not start", s.path)
	}
	for figure, decided := range decision.Decided {
		said, ok := says[figure]
		switch {
		case !ok && !slices.Contains(s.unread, figure):
			t.Errorf("%s: the program does not say %s: %v", s.path, figure, says)
		case ok && said != decided:
			t.Errorf("%s: %s is %d, by runtimes %d (%+v)", s.path, figure, said, decided, decision)
		}
	}
	host, err := here.Limits()
	if host.Host == 0 {
		t.Fatal(err)
	}
	for _, setting := range threadpool.Known().Settings() {
		said, ok := says[setting.Decides]
		if setting.Of != s.key || !ok || !setting.CanBeTold() {
			continue
		}
		fits := setting.Fits(s.limit, host.Host)
		// A library's figure is shown where the process was told it.
		if shown, has := decision.Fits[setting.Decides]; shown != fits && (has || setting.Pool == "") {
			t.Errorf("%s: %s: by its row %d fit, by runtimes %d", s.path, setting.Decides, fits, decision.Fits[setting.Decides])
		}
		row := setting.Decided(s.limit, host.Host)
		if s.sized && setting.Pool != "" && setting.Told(says["processors"]) == fits {
			row = fits // its processors make it right, so that nothing tells it
		} else if s.sized && !s.deaf {
			row = fits
			if decision.Told[setting.Decides] != setting.Name() {
				t.Errorf("%s: runtimes does not see that %s told %s: %+v", s.path, setting.Name(), setting.Decides, decision)
			}
		}
		if said != row {
			t.Errorf("%s: %s is %d, by its row %d", s.path, setting.Decides, said, row)
		}
	}
}

// TestUsersSettingsStayForReal starts real programs with settings of the user's, in each spelling, as they are and under `sized`: both
// decide the same, and `runtimes` says so.
func TestUsersSettingsStayForReal(t *testing.T) {
	cgrouptest.New(t)
	if require.InLab() {
		t.Skip("needs v1: each runtime starts twice for each spelling, for which the guest has not the CPU time; " +
			"runs in a host with cgroup v1")
	}
	all := maps.Clone(realRuntimes)
	for _, java := range require.JDK(t)[:1] {
		all["java"] = javaOf(java)
	}
	for _, c := range []struct {
		program, figure string
		env             []string
		options         []string // after the program's name
		by              string   // what told the figure; an option of the program itself comes last on its command line
	}{
		{"openblas", "openblas_threads", []string{"OMP_NUM_THREADS=2"}, nil, "OMP_NUM_THREADS"},
		{"openblas", "openblas_threads", []string{"OMP_NUM_THREADS=2,1", "OPENBLAS_NUM_THREADS=0"}, nil, "OMP_NUM_THREADS"},
		{"openblas", "openblas_threads", []string{"OMP_NUM_THREADS=1", "GOTO_NUM_THREADS=2"}, nil, "GOTO_NUM_THREADS"},
		{"openblas", "openblas_threads", []string{"GOTO_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=2"}, nil, "OPENBLAS_NUM_THREADS"},
		{"openblas", "openblas_threads", []string{"GOTO_NUM_THREADS=1000"}, nil, "GOTO_NUM_THREADS"},
		{"openmp", "openmp_threads", []string{"OMP_NUM_THREADS=5,2"}, nil, "OMP_NUM_THREADS"},
		{"go", "processors", []string{"GOMAXPROCS=3"}, nil, "GOMAXPROCS"},
		{"tokio and rayon", "rayon_threads", []string{"RAYON_RS_NUM_CPUS=3"}, nil, "RAYON_RS_NUM_CPUS"},
		{"tokio and rayon", "rayon_threads", []string{"RAYON_RS_NUM_CPUS=3", "RAYON_NUM_THREADS=5"}, nil, "RAYON_NUM_THREADS"},
		{"node", "v8_workers", []string{"NODE_OPTIONS=--v8_pool_size=3"}, nil, "NODE_OPTIONS --v8-pool-size"},
		{"node", "v8_workers", []string{`NODE_OPTIONS="--v8-pool-size=3"`}, nil, "NODE_OPTIONS --v8-pool-size"},
		{"node", "v8_workers", []string{"NODE_OPTIONS=--v8-pool-size=3"}, []string{"--v8_pool_size=5"}, "--v8-pool-size"},
		{"node", "v8_workers", []string{"NODE_OPTIONS=--v8-pool-size=0"}, nil, "NODE_OPTIONS --v8-pool-size"},
		{"node", "libuv_pool", []string{"UV_THREADPOOL_SIZE=2000"}, nil, "UV_THREADPOOL_SIZE"},
		{"node", "libuv_pool", []string{"UV_THREADPOOL_SIZE=0"}, nil, "UV_THREADPOOL_SIZE"},
		{"java", "processors", []string{`JAVA_TOOL_OPTIONS="-XX:ActiveProcessorCount=7"`}, nil,
			"JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount"},
		{"java", "processors", []string{`JAVA_TOOL_OPTIONS=-Da='b c' '-XX:ActiveProcessorCount=6'`}, nil,
			"JAVA_TOOL_OPTIONS -XX:ActiveProcessorCount"},
		{"java", "processors", []string{"JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=5",
			"JAVA_TOOL_OPTIONS=-XX:ActiveProcessorCount=4"}, nil, "JDK_JAVA_OPTIONS -XX:ActiveProcessorCount"},
		{"java", "processors", []string{"JDK_JAVA_OPTIONS=-XX:ActiveProcessorCount=5"},
			[]string{"-XX:ActiveProcessorCount=3"}, "-XX:ActiveProcessorCount"},
		{"java", "processors", []string{"_JAVA_OPTIONS=-XX:ActiveProcessorCount=5"},
			[]string{"-XX:ActiveProcessorCount=3"}, "_JAVA_OPTIONS -XX:ActiveProcessorCount"},
		{"netty and finagle", "netty_threads", []string{"JAVA_TOOL_OPTIONS=-Dio.netty.eventLoopThreads=3"}, nil,
			"JAVA_TOOL_OPTIONS -Dio.netty.eventLoopThreads"},
		{"netty and finagle", "netty_threads", []string{"JAVA_TOOL_OPTIONS=-Dio.netty.eventLoopThreads=3"},
			[]string{"-Dio.netty.eventLoopThreads=5"}, "-Dio.netty.eventLoopThreads"},
		{"netty and finagle", "finagle_threads", []string{"JDK_JAVA_OPTIONS=-Dcom.twitter.finagle.netty4.numWorkers=3"}, nil,
			"JDK_JAVA_OPTIONS -Dcom.twitter.finagle.netty4.numWorkers"},
		{"netty and finagle", "finagle_threads", []string{"JAVA_TOOL_OPTIONS=-Dcom.twitter.finagle.netty4.numWorkers=3"},
			[]string{"-com.twitter.finagle.netty4.numWorkers=5"}, "-com.twitter.finagle.netty4.numWorkers"},
		{"python", "processors", []string{"PYTHON_CPU_COUNT=3"}, []string{"-X", "cpu_count=5"}, "-X cpu_count"},
		{"python", "processors", []string{"PYTHON_CPU_COUNT=3"}, []string{"-Xcpu_count=5"}, "-X cpu_count"},
		{"erlang", "schedulers", []string{"ERL_FLAGS=+S2:2"}, nil, "ERL_FLAGS +S"},
		{"erlang", "schedulers", []string{"ERL_FLAGS=+S 4:3", "ERL_ZFLAGS=+S 2:2"}, nil, "ERL_ZFLAGS +S"},
	} {
		t.Run(fmt.Sprintf("%s %s", c.program, strings.Join(slices.Concat(c.env, c.options), " ")), func(t *testing.T) {
			t.Parallel()
			r := all[c.program]
			tr, command, at := cgrouptest.New(t), r.command(t, c.program), 1
			if strings.HasPrefix(c.by, "-com.") {
				at = len(command)
			}
			command = slices.Insert(command, at, c.options...)
			var both []map[string]int
			for _, sized := range []bool{false, true} {
				path := tr.Make(fmt.Sprint(sized))
				tr.Limit(path, 0.5)
				s := &startedRuntime{realRuntime: r, path: path, limit: 0.5, sized: sized, env: c.env}
				s.start(t, tr, command)
				says, decision, _ := s.figures(t)
				if says[c.figure] == 0 || says[c.figure] != decision.Decided[c.figure] || decision.Told[c.figure] != c.by {
					t.Errorf("sized %t: %s is %d, by runtimes %+v", sized, c.figure, says[c.figure], decision)
				}
				both = append(both, says)
			}
			if both[0][c.figure] != both[1][c.figure] {
				t.Errorf("%s is %d, and %d under sized", c.figure, both[0][c.figure], both[1][c.figure])
			}
		})
	}
}

func runtimeNamed(key string) string {
	for _, setting := range threadpool.Known().Settings() {
		if setting.Of == key {
			return setting.Runtime
		}
	}
	return ""
}

// built compiles a program into dir/program, {} in the command.
func built(dir string, command ...string) ([]string, error) {
	exe := filepath.Join(dir, "program")
	for i, word := range command {
		command[i] = strings.ReplaceAll(word, "{}", exe)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, err
	}
	if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", command[0], err, out)
	}
	return []string{exe}, nil
}

func found(command ...string) ([]string, error) {
	_, err := exec.LookPath(command[0])
	return command, err
}

// pythonOf finds a CPython 3 whose minor version is wanted. A command of that name may be a script that finds the program.
func pythonOf(wanted func(minor int) bool, kind string) ([]string, error) {
	candidates := []string{"python3"}
	if home, err := os.UserHomeDir(); err == nil {
		all, _ := filepath.Glob(filepath.Join(home, ".pyenv/versions/3.*/bin/python3")) // PATH has one of them
		candidates = append(candidates, all...)
	}
	for _, name := range candidates {
		text, err := exec.Command(name, "-c", "import sys; print(sys.version_info[1], sys.executable)").Output()
		var minor int
		var exe string
		if _, scan := fmt.Sscan(string(text), &minor, &exe); err != nil || scan != nil || !wanted(minor) {
			continue
		}
		return []string{exe, "-c", "import os, sys\nprint('processors=%d' % getattr(os, 'process_cpu_count', " +
			"os.cpu_count)(), flush=True)\nsys.stdin.read(1)"}, nil
	}
	return nil, fmt.Errorf("no Python %s", kind)
}

// nginxOf is nginx with as many workers as it decides.
func nginxOf(t *testing.T, dir string) ([]string, error) {
	if _, err := exec.LookPath("nginx"); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nginx.conf")
	text := "daemon off; worker_processes auto; pid " + dir + "/nginx.pid; error_log stderr crit; events {}"
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return []string{"nginx", "-e", "stderr", "-c", config}, nil
}

// workersOf waits until nginx has a worker for each CPU.
func workersOf(t *testing.T, pid int) string {
	t.Helper()
	want, err := here.Limits()
	if want.Host == 0 {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if n := len(strings.Fields(string(children))); err != nil || n == want.Host || time.Now().After(end) {
			return fmt.Sprintf("workers=%d", n)
		}
	}
}

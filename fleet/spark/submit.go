package spark

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unthrottle/unthrottle/internal/text"
)

// program is what starts a job of Spark.
const program = "spark-submit"

// Find finds spark-submit: in the folder that SPARK_HOME names, or in PATH.
func Find(getenv func(string) string) (string, error) {
	if home := getenv("SPARK_HOME"); home != "" {
		found, err := exec.LookPath(filepath.Join(home, "bin", program))
		if err != nil {
			return "", fmt.Errorf("SPARK_HOME is %s: %w: name a folder of Spark 4 there, or unset it", text.Shown(home), err)
		}
		return found, nil
	}
	found, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is neither in SPARK_HOME/bin nor in PATH: 'pip install pyspark==4.*' in a virtual "+
			"environment brings Spark; it needs Java 17 or 21 (Debian: apt-get install openjdk-17-jre-headless)", program)
	}
	if found, err = filepath.Abs(found); err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(found); err == nil && filepath.Base(real) == program {
		found = real
	}
	return found, nil
}

// needJava checks that there is a Java for Spark to start.
func needJava(getenv func(string) string) error {
	if home := getenv("JAVA_HOME"); home != "" {
		if _, err := exec.LookPath(filepath.Join(home, "bin", "java")); err != nil {
			return fmt.Errorf("JAVA_HOME is %s: %w: name a Java 17 or 21 there, or unset it", text.Shown(home), err)
		}
		return nil
	}
	if _, err := exec.LookPath("java"); err != nil {
		return errors.New("Spark needs Java 17 or 21, and there is no java in PATH: on Debian apt-get install " +
			"openjdk-17-jre-headless, or set JAVA_HOME")
	}
	return nil
}

// Steps of a run.
const (
	Started  = "started"
	Made     = "made"     // a table
	Answered = "answered" // all questions
	failed   = "failed"
)

// Step is how far a run is.
type Step struct {
	// Name is that of the table, or why the run failed. Rows are those of the table, or how many questions were answered.
	Step string `json:"step"`
	Name string `json:"name"`
	Rows int64  `json:"rows"`
}

// arguments are those of spark-submit.
func (e *Engine) arguments() []string {
	args := []string{"--master", string(e.o.Master), "--deploy-mode", "client", "--name", "unthrottle fleet",
		"--driver-memory", fmt.Sprintf("%dm", e.o.MemoryMB)}
	settings := []string{
		"spark.ui.enabled=false", "spark.ui.showConsoleProgress=false", "spark.log.level=WARN",
		"spark.sql.session.timeZone=UTC", "spark.sql.ansi.enabled=true", "spark.sql.caseSensitive=true",
		"spark.sql.files.ignoreCorruptFiles=true",  // rows are counted afterwards
		"spark.sql.files.ignoreMissingFiles=false", // a worker without the folder is a failure
		"spark.sql.shuffle.partitions=" + fmt.Sprint(e.partitions()),
	}
	if e.o.Master.Here() {
		settings = append(settings, "spark.driver.host=127.0.0.1", "spark.driver.bindAddress=127.0.0.1")
	}
	if memory, ok := e.o.Master.clusterHere(); ok {
		settings = append(settings, "spark.executor.memory="+memory+"m")
	}
	for _, s := range settings {
		args = append(args, "--conf", s)
	}
	return append(args, filepath.Join(e.o.Dir, "job.py"), filepath.Join(e.o.Dir, "job.json"))
}

// partitions is into how many parts Spark shares rows by a key. It joins small ones; here it starts with few, since
// each costs a task.
func (e *Engine) partitions() int {
	if e.o.Master.Here() {
		return 4 * runtime.NumCPU()
	}
	return 400
}

// environment is that of Spark's processes.
func (e *Engine) environment(submit string) ([]string, error) {
	env := append(os.Environ(), "TMPDIR="+e.o.Dir, "SPARK_LOCAL_DIRS="+filepath.Join(e.o.Dir, "spilled"),
		"SPARK_SUBMIT_OPTS="+strings.TrimSpace(os.Getenv("SPARK_SUBMIT_OPTS")+` "-Djava.io.tmpdir=`+optionText.Replace(e.o.Dir)+`"`))
	if e.o.Master.Here() {
		env = append(env, "SPARK_LOCAL_IP=127.0.0.1")
	}
	if _, ok := e.o.Master.clusterHere(); ok {
		home, err := e.home(submit)
		if err != nil {
			return nil, err
		}
		env = append(env, "SPARK_HOME="+home)
	}
	if os.Getenv("PYSPARK_PYTHON") == "" && os.Getenv("PYSPARK_DRIVER_PYTHON") == "" {
		// That of a virtual environment that holds Spark, which need not be the one in PATH.
		if python, err := exec.LookPath(filepath.Join(filepath.Dir(submit), "python3")); err == nil {
			env = append(env, "PYSPARK_DRIVER_PYTHON="+python)
		}
	}
	return env, os.Mkdir(filepath.Join(e.o.Dir, "spilled"), 0o700)
}

// home is a folder with links to what Spark's own has: the workers of a local cluster write into a folder "work" there.
func (e *Engine) home(submit string) (string, error) {
	installed := os.Getenv("SPARK_HOME")
	if installed == "" {
		installed = filepath.Dir(filepath.Dir(submit))
	}
	// it is not of an archive of Spark, but of Python's package
	if _, err := os.Stat(filepath.Join(installed, "jars")); err != nil {
		found, err := exec.Command(filepath.Join(filepath.Dir(submit), "python3"),
			filepath.Join(filepath.Dir(submit), "find_spark_home.py")).Output()
		if err != nil {
			return "", fmt.Errorf("%s: find the folder of Spark: %w: set SPARK_HOME", text.Shown(submit), err)
		}
		installed = strings.TrimSpace(string(found))
	}
	has, err := os.ReadDir(installed)
	if err != nil {
		return "", fmt.Errorf("the folder of Spark: %w: set SPARK_HOME", err)
	}
	home := filepath.Join(e.o.Dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return "", err
	}
	for _, entry := range has {
		if entry.Name() == "work" {
			continue
		}
		if err := os.Symlink(filepath.Join(installed, entry.Name()), filepath.Join(home, entry.Name())); err != nil {
			return "", err
		}
	}
	return home, nil
}

// optionText makes a part of a quoted option of Java.
var optionText = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// submit runs the job to its end.
func (e *Engine) submit(ctx context.Context) (err error) {
	logName := filepath.Join(e.o.Dir, "spark.log")
	log, err := os.Create(logName)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(e.o.Submit, e.arguments()...)
	cmd.Dir, cmd.Stderr = e.o.Dir, log
	if cmd.Env, err = e.environment(e.o.Submit); err != nil {
		return err
	}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGTERM}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	// Pdeathsig is sent when the thread ends that started the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", text.Shown(e.o.Submit), err)
	}
	group := cmd.Process.Pid
	var ends sync.WaitGroup
	ended := make(chan struct{})
	ends.Go(func() { // until it has ended its number is its own: Wait comes after this
		select {
		case <-ended:
		case <-ctx.Done():
			_ = unix.Kill(-group, unix.SIGTERM)
			select {
			case <-ended:
			case <-time.After(e.patience):
			}
		}
		_ = unix.Kill(-group, unix.SIGKILL) // what is left of it
	})
	ends.Go(func() {
		defer close(ended)
		for errors.Is(unix.Waitid(unix.P_PID, group, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
		}
	})
	why := e.follow(out)
	ends.Wait()
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && why == "":
		return nil
	case why == "":
		why = err.Error()
	}
	return &Failed{Why: why, Log: lastLines(logName), Master: e.o.Master}
}

// follow reads what the job says until it ends, and returns why it failed.
func (e *Engine) follow(out io.Reader) (why string) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if step, ok := strings.CutPrefix(line, "unthrottle "); ok {
			var s Step
			if json.Unmarshal([]byte(step), &s) == nil {
				if s.Step == failed {
					why = s.Name
				}
				if e.o.Progress != nil {
					e.o.Progress(s)
				}
			}
		}
		if err != nil {
			return why
		}
	}
}

// Failed is the error of a run of Spark.
type Failed struct {
	Why    string
	Log    []string
	Master Master
}

func (f *Failed) Error() string {
	why, _, _ := strings.Cut(strings.TrimSpace(f.Why), "\n")
	s := "Spark on " + text.Sanitize(string(f.Master), 200) + ": " + text.Sanitize(why, 400)
	if len(f.Log) > 0 {
		s += "\n  the end of its log:\n  " + strings.Join(f.Log, "\n  ")
	}
	s += "\nIt needs Spark 4 with Java 17 or 21"
	if !f.Master.Here() {
		s += ", and the folder of rows at the same path on each machine"
	}
	return s
}

// Bounds of what is shown of a log.
const (
	logBytes = 16 << 10
	logLines = 12
	logWidth = 200
)

// lastLines are the last lines of Spark's log, without the places in Spark's own code.
func lastLines(name string) (lines []string) {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > logBytes {
		_, _ = f.Seek(-logBytes, io.SeekEnd)
	}
	end, _ := io.ReadAll(io.LimitReader(f, logBytes))
	for line := range strings.Lines(string(end)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "at ") && !strings.HasPrefix(line, "... ") {
			lines = append(lines, text.Sanitize(line, logWidth))
		}
	}
	return lines[max(0, len(lines)-logLines):]
}

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// asProgram makes the test's program behave as the command itself.
const asProgram = "UNTHROTTLE_FLEET_TEST_ARGS"

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(asProgram); ok {
		os.Args = append([]string{"unthrottle-fleet"}, strings.Split(args, "\n")...)
		main()
		return
	}
	os.Exit(m.Run())
}

// program is a run of the command in a process of its own.
func program(t *testing.T, temp string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, asProgram+"="+strings.Join(args, "\n"))
	return cmd
}

// left are the names in a folder.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A run that is killed leaves its folder; the next one removes that, and leaves nothing of its own.
func TestKilled(t *testing.T) {
	dir, temp := rows(t, 6), t.TempDir()
	// In place of Spark there is a program that says through a pipe that it was started, and waits.
	waits := filepath.Join(temp, "waits")
	if err := os.Mkdir(waits, 0o700); err != nil {
		t.Fatal(err)
	}
	spark := filepath.Join(waits, "spark-submit")
	pipe := filepath.Join(waits, "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spark, []byte("#!/bin/sh\necho begun >"+pipe+"\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(waits, "java"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Open at both ends: a run that ends early is no end of the pipe, and the wait has a bound.
	told, err := os.OpenFile(pipe, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	if err := told.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	killed := program(t, temp, "report", dir, "--on", "local[1]")
	killed.Env = append(killed.Env, "PATH="+waits+":"+os.Getenv("PATH"), "SPARK_HOME=", "JAVA_HOME=")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := told.Read(make([]byte, 16)); err != nil { // until the run has its folder and has started Spark
		t.Error(err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if names := left(t, temp); len(names) != 2 ||
		!slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "unthrottle-fleet-") }) {
		t.Fatalf("a killed run left %q", names)
	}
	var says bytes.Buffer
	next := program(t, temp, "report", dir)
	next.Stderr = &says
	out, err := next.Output()
	if err != nil || !strings.Contains(string(out), "6 containers of 1 service on 3 hosts") ||
		!strings.Contains(says.String(), "removed 1 temporary folder of runs that were killed") {
		t.Errorf("%v, %s\n%s", err, &says, out)
	}
	if names := left(t, temp); !slices.Equal(names, []string{"waits"}) {
		t.Errorf("left: %q", names)
	}
}

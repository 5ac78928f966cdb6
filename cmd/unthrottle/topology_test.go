package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSysfsAtFault gives what is no tree: a fault of the input ends with 2, as that of a file does, and a pipe blocks nothing.
func TestSysfsAtFault(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{syscall.Mkfifo(at("pipe"), 0o600), os.Mkdir(at("empty"), 0o700),
		os.MkdirAll(at("piped/devices/system/cpu"), 0o700),
		os.WriteFile(at("file"), nil, 0o600), syscall.Mkfifo(at("piped/devices/system/cpu/present"), 0o600),
		syscall.Mkfifo(at("piped/devices/system/node"), 0o600),
		os.WriteFile(at("c.yaml"), []byte("- {name: a, cpus: 1}"), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, says := range map[string]string{"none": "no such file", "file": "no folder", "pipe": "no folder",
		"empty": "is this a copy of /sys?",
		"piped": "is this a copy of /sys?"} {
		for _, args := range [][]string{{"topology"}, {"place", "--containers", at("c.yaml")}} {
			root := newRoot()
			root.SetOut(io.Discard)
			root.SetArgs(append(args, "--sysfs", at(name)))
			err := root.Execute()
			if with := (exitWith{}); err == nil || !strings.Contains(err.Error(), says) || errors.As(err, &with) {
				t.Errorf("%s --sysfs %s: %v", args[0], name, err)
			}
		}
	}
}

// TestPlaceTellsFaults places on a machine whose description tells a fault: it is passed on, and escaped.
func TestPlaceTellsFaults(t *testing.T) {
	dir := placeFiles(t, map[string]string{"c.yaml": "- {name: a, cpus: 1}",
		"faulty.json": `{"cpus":[{"id":0},{"id":1}],"faults":["odd \u001b[2J"]}`})
	stderr := os.Stderr
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = write
	_, err = place(t, "", "--topology", filepath.Join(dir, "faulty.json"), "--containers", filepath.Join(dir, "c.yaml"))
	os.Stderr = stderr
	write.Close()
	said, _ := io.ReadAll(read)
	if err != nil || !bytes.Contains(said, []byte(`odd \x1b[2J`)) {
		t.Errorf("%v: %q", err, said)
	}
}

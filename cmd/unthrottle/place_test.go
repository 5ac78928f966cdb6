package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unthrottle/unthrottle/internal/kernel/topologytest"
	view "github.com/unthrottle/unthrottle/internal/ui/report/place"
	"github.com/unthrottle/unthrottle/placement"
)

// place runs the command and returns what it printed.
func place(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	root := newRoot()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetIn(strings.NewReader(stdin))
	root.SetArgs(append([]string{"place"}, args...))
	err := root.Execute()
	return out.String(), err
}

// files writes a machine of 2 sockets with 4 cores of 2 threads each, and texts.
func placeFiles(t *testing.T, texts map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	m, err := json.Marshal(topologytest.Shape{Sockets: 2, CoresPerL3: 4, Threads: 2}.Machine(t))
	if err != nil {
		t.Fatal(err)
	}
	texts["machine.json"] = string(m)
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPlaceRoundTrip(t *testing.T) {
	dir := placeFiles(t, map[string]string{
		"one.yaml": "- {name: a, cpus: 3}\n- {name: b, cpus: 2.5, class: hybrid}\n- {name: c, cpus: 2}\n- {name: a, " +
			"leaves: true}\n- {name: d, cpus: 99}\n",
		"two.yaml": "- {name: e, cpus: 4, full_cores: true}\n- {name: c, leaves: true}\n",
	})
	machine := filepath.Join(dir, "machine.json")
	read := func(text string) (p view.JSON) {
		t.Helper()
		if err := json.Unmarshal([]byte(text), &p); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return p
	}
	text, err := place(t, "", "--topology", machine, "--containers", filepath.Join(dir, "one.yaml"), "--json")
	if err != nil {
		t.Fatal(err)
	}
	first := read(text)
	if len(first.Containers) != 2 || first.Containers[0].Name != "b" || len(first.Refused) != 1 || first.Refused[0].Name != "d" {
		t.Fatalf("%+v", first)
	}
	again, err := place(t, "", "--topology", machine, "--containers", filepath.Join(dir, "one.yaml"), "--json")
	if err != nil || again != text {
		t.Errorf("the same input gives another output:\n%s\n%s", text, again)
	}
	// What is there stays where it is.
	text, err = place(t, text, "--topology", machine, "--current", "-", "--containers", filepath.Join(dir, "two.yaml"), "--json")
	if err != nil {
		t.Fatal(err)
	}
	second := read(text)
	if len(second.Containers) != 2 || second.Containers[0].Dedicated != first.Containers[0].Dedicated || second.Containers[1].Name != "e" {
		t.Errorf("%+v", second)
	}
	// Another program's placement, judged: a crosses although socket 0 had room.
	text, err = place(t, `{"containers":[{"name":"a","cpus":"0,4"},{"name":"b","cpus":"8,12"}]}`, "--topology", machine,
		"--current", "-", "--score", "--json")
	if err != nil {
		t.Fatal(err)
	}
	score := read(text)
	if !score.Containers[0].Avoidable || score.Containers[0].Sockets != 2 || score.Score.Sockets.Avoidable != 2 ||
		len(score.Moves) == 0 || score.After.Sockets.Avoidable != 0 {
		t.Errorf("%s", text)
	}
}

func TestPlaceRefuses(t *testing.T) {
	dir := placeFiles(t, map[string]string{"bad.yaml": "- {name: a, cpus: -1}", "c.yaml": "- {name: a, cpus: 1}",
		"bad.json": "{", "none.json": "{}",
		"off.json": `{"cpus":[{"id":0},{"id":1,"online":false},{"id":2}]}`})
	file := func(name string) string { return filepath.Join(dir, name) }
	machine := file("machine.json")
	for _, c := range []struct {
		args  []string
		names string
	}{
		{nil, "--containers is missing"},
		{[]string{"--score"}, "say with --current"},
		{[]string{"--containers", ""}, "--containers is empty"},
		{[]string{"--containers", file("nowhere")}, "nowhere: no such file"},
		{[]string{"--containers", dir}, "a folder: give a file"},
		{[]string{"--topology", machine, "--containers", file("bad.yaml")}, "bad.yaml:1: [0].cpus"},
		{[]string{"--topology", file("bad.json"), "--containers", file("c.yaml")}, "bad.json"},
		{[]string{"--topology", machine, "--containers", file("c.yaml"), "--current", file("none.json")}, "containers: is missing"},
		{[]string{"--topology", machine, "--containers", file("c.yaml"), "--order", "speed"},
			`--order: "speed" is no objective: choose from spans`},
		{[]string{"--topology", machine, "--containers", file("c.yaml"), "--reserve", "x"}, `--reserve: list "x"`},
		{[]string{"--topology", machine, "--containers", file("c.yaml"), "--reserve", "0,99"}, "--reserve: this machine has no CPUs 99"},
		{[]string{"--topology", machine, "--containers", file("c.yaml"), "--unavailable", "98-99"},
			"--unavailable: this machine has no CPUs 98-99"},
		{[]string{"--topology", file("off.json"), "--containers", file("c.yaml"), "--reserve", "0-1"},
			"--reserve: the reserve names CPUs 1, which are not there or offline: 0,2 are online"},
		{[]string{"--topology", machine, "--sysfs", dir, "--containers", file("c.yaml")}, "give one of them"},
		{[]string{"--containers", "-", "--current", "-"}, "standard input can be one file only"},
		{[]string{"--containers", file("c.yaml"), "--max-moves", "-1"}, "--max-moves -1"},
		{[]string{"x"}, "takes no arguments"},
	} {
		if _, err := place(t, "", c.args...); err == nil || !strings.Contains(err.Error(), c.names) {
			t.Errorf("%v: error %v does not say %s", c.args, err, c.names)
		}
	}
	if _, err := place(t, "", "--topology", machine, "--containers", file("c.yaml"), "--order",
		placement.DefaultOrder().String(), "--reserve", "0-1"); err != nil {
		t.Error(err)
	}
}

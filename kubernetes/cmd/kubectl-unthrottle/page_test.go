package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// pluginPage is the plugin's page.
var pluginPage = filepath.Join("..", "..", "..", "docs", "reference", "kubectl.md")

// TestPage: each output that the page shows is what the command prints, of a cluster whose agent answers as testdata/pages has it.
// UPDATE_GOLDEN=1 writes them into the page.
func TestPage(t *testing.T) {
	zone := time.Local
	time.Local = time.UTC
	defer func() { time.Local = zone }()
	data, err := os.ReadFile(pluginPage)
	if err != nil {
		t.Fatal(err)
	}
	const prompt = "$ kubectl unthrottle "
	var out []string
	shown := 0
	lines := strings.Split(string(data), "\n")
	for i := 0; i < len(lines); i++ {
		out = append(out, lines[i])
		command, ok := strings.CutPrefix(lines[i], prompt)
		if !ok {
			continue
		}
		shown++
		out = append(out, printed(t, command)...)
		for i+1 < len(lines) && lines[i+1] != "```" {
			i++
		}
	}
	if shown < 5 {
		t.Fatalf("%d commands are shown", shown)
	}
	now := strings.Join(out, "\n")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(pluginPage, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if now != string(data) {
		t.Errorf("%s shows something else than the commands print (UPDATE_GOLDEN=1 go test ./cmd/kubectl-unthrottle "+
			"writes it):\n%s", pluginPage, now)
	}
}

// printed is what a command of the page prints, as on a terminal; after a pipe into head or tail what these leave of it.
func printed(t *testing.T, command string) []string {
	t.Helper()
	w := newWorld(t)
	command, filter, piped := strings.Cut(command, " | ")
	args := strings.Fields(command)
	switch {
	case args[0] == "restore":
		w.good("fix", cartPod, "--wait", "0")
		w.moments = []string{"cured", "cured", "kept"}
	case args[0] == "fix" && slices.Contains(args, "secondary"):
		w.says = "False NotAllowed spec.mode: apply is not allowed here; no ClusterThrottlePolicy with allow names " +
			"this namespace, which then allows mode observe, remedies none, auto, may nothing; none of it is in force"
	case args[0] == "fix":
		w.moments = []string{"before", "before", "confirming", "trying", "cured"}
	}
	all, err := w.terminal(args...)
	if err != nil {
		all += "error: " + err.Error() + "\n"
	}
	if !piped {
		return strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	}
	what, count, _ := strings.Cut(filter, " -n ")
	n, err := strconv.Atoi(count)
	if err != nil {
		t.Fatalf("%q: %v", filter, err)
	}
	w = newWorld(t)
	out, said := w.good(args...)
	of := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	switch what {
	case "head":
		of = of[:n]
	case "tail":
		of = of[len(of)-n:]
	default:
		t.Fatalf("the page pipes into %q", what)
	}
	return append(strings.Split(strings.TrimSuffix(said, "\n"), "\n"), of...)
}
